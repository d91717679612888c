// The entitlement database of the model, and the real functions that change it.
import type { Commit } from "../../../entitlement/decide_change.ts";
import { republishUnreceived } from "../../../entitlement/reconciliation/republish_unreceived.ts";
import { republishLost } from "../../../shared/outbox/republish_lost.ts";
import type { AuditedEvent } from "../../../entitlement/reconciliation/check.ts";
import { outbox as table } from "../../../entitlement/outbox.ts";
import { storeEvents } from "../../../entitlement/store_changes.ts";
import { newOperation } from "../../../shared/operators/operations.ts";
import { query, type Transaction } from "../../../shared/postgres/postgres.ts";
import { freshDatabase } from "../../support/databases.ts";
import {
  asHeld,
  asRecords,
  bornAt,
  byEvent,
  idOf,
  type LeasedCalls,
  leasedCalls,
  leasedColumns,
  leasedValues,
  newLease,
  rowOfModel,
  type StoredRow,
  tokenOf,
} from "./leased_rows.ts";
import {
  type Changed,
  RealCalls,
  type Rewrite,
  type TableAccess,
  type View,
} from "./real_calls.ts";
import { answeredFirst, createdAs, log, noting, repairWith, serverAs } from "./repair_calls.ts";
import {
  type Answers,
  type Event,
  events,
  type Found,
  type Generation,
  type Held,
  type Outbox,
  type OutboxRow,
} from "./state.ts";

export interface OutboxCalls extends LeasedCalls<Outbox> {
  real: RealCalls<Outbox>;
  // Returns the event if it was written as leased, which needs a relay that offers to take it.
  commit(outbox: Outbox, event: Event, offered: boolean): Promise<Changed<Outbox, Held[]>>;
  // repairLostEvents until it asks the stream. Returns what it has read so far.
  look(outbox: Outbox): Promise<Changed<Outbox, Answers>>;
  // The rest of it. Returns the generation; undefined if it was killed or must start again.
  repair(
    outbox: Outbox,
    recorded: Answers,
    found: Found,
    killed: boolean,
  ): Promise<Changed<Outbox, number | undefined>>;
  republishLost(outbox: Outbox): Promise<Changed<Outbox, void>>; // every few seconds
  republishMissing(outbox: Outbox, missing: Event[]): Promise<Changed<Outbox, unknown>>;
}

export function outboxCalls(rewrite?: Rewrite): OutboxCalls {
  const real = new RealCalls(access, rewrite);
  return {
    real,
    ...leasedCalls(real, {
      claim: table.claim,
      keep: table.extend,
      settle: table.settle,
      resultAt: (place) => ({ ...place ?? { generation: 0, sequence: 0 }, ackedAt: 0 }),
    }, { ofClaims: withoutPlaces, ofRow: onlyRow }),
    commit: (outbox, event, offered) =>
      real.after(outbox, `commit ${event} ${offered}`, async (database) => {
        const tx = database as unknown as Transaction; // which one statement does not need
        const lease = offered ? newLease() : undefined;
        return (await storeEvents(tx, [commitOf(event)], lease)).map(asHeld);
      }, { view: withoutPlaces }),
    look: (outbox) =>
      real.after(outbox, "look", async (database) => {
        const answers: Answers = [];
        await repairWith(noting(database, answers), undefined);
        return answers;
      }, { view: onlyPublished }),
    repair: (outbox, recorded, found, killed) =>
      real.after(
        outbox,
        `repair ${JSON.stringify([recorded, found])}`,
        (database) => repairWith(answeredFirst(database, recorded), found),
        { view: onlyPublished, killedBefore: killed ? /update outbox_events/ : undefined },
      ),
    republishLost: (outbox) =>
      real.after(
        outbox,
        "republish lost",
        (database) => republishLost(database, table, log),
        { view: onlyPublished },
      ),
    republishMissing: (outbox, missing) =>
      real.after(
        outbox,
        `republish ${missing}`,
        (database) =>
          republishUnreceived(database, missing.map(asAudited), newOperation(operation)),
        { view: withoutGenerations },
      ),
  };
}

const operation = { who: "reconciliation", reason: "not received" };

function asAudited(event: Event): AuditedEvent {
  const { key = "", version = 0 } = events[event] ?? {};
  const [user_id = "", stock_keeping_unit = ""] = key.split(":");
  const event_id = idOf(event);
  return { event_id, occurred_at: bornAt(event), user_id, stock_keeping_unit, version };
}

function commitOf(event: Event): Commit {
  const { key = "", version = 0 } = events[event] ?? {};
  const [userId = "", stockKeepingUnit = ""] = key.split(":");
  return {
    request: {
      ...{ action: "GRANT", userId, stockKeepingUnit, reason: "purchase", purchaseId: "p-1" },
      ...{ caller: "", idempotencyKey: idOf(event), traceId: "", traceparent: null },
    },
    at: bornAt(event),
    eventId: idOf(event),
    version,
  };
}

const pending: OutboxRow = {
  status: "PENDING",
  attempts: 0,
  waits: false,
  lease: "none",
  place: null,
};

// Claims and heartbeats don't depend on the stream.
const withoutPlaces: View<Outbox> = {
  of: ({ rows }) => ({
    rows: rows.map((row) => row?.place ? { ...row, place: { generation: 1, sequence: 1 } } : row),
    generations: [],
  }),
  unread: /stream/,
};

const withoutGenerations: View<Outbox> = {
  of: ({ rows }) => ({ rows, generations: [] }),
  unread: /stream_generations/,
};

const onlyRow = (event: Event): View<Outbox> => ({
  of: ({ rows }) => ({
    rows: rows.map((row, at) => at === event ? row : pending),
    generations: [],
  }),
  unread: /exists|stream_generations/,
});

const onlyPublished: View<Outbox> = {
  of: ({ rows, generations }) => ({
    rows: rows.map((row) => row?.status === "PUBLISHED" ? row : pending),
    generations,
  }),
  unread: /exists|claim_token|lease_until/,
};

const access: TableAccess<Outbox> = {
  freshDatabase: () => freshDatabase("entitlement"),
  names: [
    "outbox_events",
    "stream_generations",
    "outbox_attempts",
    "entitlements",
    "entitlement_audit",
    "operations",
    "unreceived_events",
  ],
  tokenOf,
  load: ({ rows, generations }) =>
    `insert into outbox_events
       (event_id, event_type, aggregate_key, payload, created_at, published_at,
        stream_generation, stream_seq, ${leasedColumns})
     select id, 'EntitlementGranted', key, '{}', born, case when status = 'PUBLISHED' then now() end,
       (place->>'generation')::bigint, (place->>'sequence')::bigint, ${leasedValues}
     from ${asRecords(rows, "place jsonb")};
     insert into stream_generations
       (generation, stream, stream_created_at, server_id, kept_up_to)
     select generation, 'stream', made, run, kept
     from json_to_recordset('${JSON.stringify(generations.map(asRecord))}')
       as (generation bigint, made text, run text, kept bigint)`,
  lock: (event) => `select from outbox_events where event_id = '${idOf(event)}' for update`,
  async read(owner) {
    const found = await query<StoredRow<OutboxRow>>(
      owner,
      `select event_id, ${rowOfModel},
         case when stream_seq is not null then
           jsonb_build_object('generation', stream_generation, 'sequence', stream_seq) end as place
       from outbox_events`,
    );
    const generations = await query<ReturnType<typeof asRecord>>(
      owner,
      `select generation, stream_created_at as made, server_id as run, kept_up_to as kept
       from stream_generations
       order by generation`,
    );
    const { rows, tokens } = byEvent<OutboxRow>(found);
    return { tokens, tables: { rows, generations: generations.map(fromRecord) } };
  },
};

const numberIn = (name: string) => Number(name.split("-")[1]);

function asRecord({ made, run, keptUpTo }: Generation, index: number) {
  return { generation: index + 1, made: createdAs(made), run: serverAs(run), kept: keptUpTo };
}

function fromRecord({ made, run, kept }: ReturnType<typeof asRecord>): Generation {
  return { made: numberIn(made), run: numberIn(run), keptUpTo: kept };
}
