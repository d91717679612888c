// Events that are not in a table. They are leased as a Redis stream leases its entries to a consumer
// group: new entries are read, entries of a consumer that is silent are claimed, and an entry is
// deleted when it is settled.
import type { EventRow } from "../../shared/outbox/event_types.ts";
import type { EventSource } from "../../shared/outbox/source.ts";

interface Entry {
  content: EventRow["content"];
  attempts: number;
  token: string | undefined; // while a relay has it
  leasedUntil: number;
}

export interface MemorySource extends EventSource<EventRow> {
  entries: Map<string, Entry>; // by id, in the order of their adding
  failed: { id: string; error: string }[];
  takenOver: string[];
  retried: string[];
  add(event_type: string, payload: unknown): string; // returns the id
  expire(): void; // all leases
}

const leaseMs = 30_000;

export function memorySource(): MemorySource {
  const entries = new Map<string, Entry>();
  const failed: MemorySource["failed"] = [];
  const takenOver: string[] = [];
  const retried: string[] = [];
  const owned = ({ id, token }: EventRow) => {
    const entry = entries.get(id);
    return entry?.token === token ? entry : undefined;
  };
  return {
    entries,
    failed,
    takenOver,
    retried,
    add: (event_type, payload) => {
      const id = crypto.randomUUID();
      const content = { event_type, payload, traceparent: null };
      entries.set(id, { content, attempts: 0, token: undefined, leasedUntil: 0 });
      return id;
    },
    expire: () => {
      for (const entry of entries.values()) entry.leasedUntil = 0;
    },
    claim: (limit) => {
      const now = performance.now();
      const token = crypto.randomUUID();
      const due = [...entries].filter(([, entry]) => entry.leasedUntil <= now);
      const rows = due.slice(0, limit).map(([id, entry]) => {
        const isTakenOver = entry.token !== undefined;
        if (isTakenOver) takenOver.push(id);
        entry.attempts += Number(isTakenOver);
        Object.assign(entry, { token, leasedUntil: now + leaseMs });
        const { attempts, content } = entry;
        return { id, key: null, token, attempts, takenOver: isTakenOver, content };
      });
      return Promise.resolve({ rows, more: due.length > limit });
    },
    extend: (rows) => {
      const kept = rows.filter((row) => {
        const entry = owned(row);
        if (entry) entry.leasedUntil = performance.now() + leaseMs;
        return entry !== undefined;
      });
      return Promise.resolve(new Set(kept.map(({ id }) => id)));
    },
    settle: (settlements) => {
      const settled = settlements.filter((settlement) => {
        const { row, kind } = settlement;
        const entry = owned(row);
        if (!entry) return false;
        if (kind === "done" || kind === "failed") entries.delete(row.id);
        if (kind === "failed") failed.push({ id: row.id, error: settlement.error });
        if (kind === "retry") retried.push(row.id);
        const delayMs = kind === "retry" ? settlement.delayMs : 0;
        Object.assign(entry, { token: undefined, leasedUntil: performance.now() + delayMs });
        entry.attempts += Number(kind === "retry");
        return true;
      });
      return Promise.resolve(new Set(settled.map(({ row }) => row.id)));
    },
  };
}
