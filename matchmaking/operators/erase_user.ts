import { z } from "zod";
import {
  type Erased,
  eraseUserRoute,
  eraseUserWith,
  type Erasure,
} from "@kenri/shared/operators/erasure.ts";
import { operationsKept } from "@kenri/shared/outbox/stream/dead_entries.ts";
import { entriesOf } from "@kenri/shared/outbox/stream/stored_events.ts";
import type { Fields } from "@kenri/shared/outbox/stream/stream_source.ts";
import type { Handler } from "hono";
import { commonKeys, joinsOf, keysOf, waitingOf } from "../keys.ts";
import { scripts } from "../scripts/scripts.ts";
import type { Stored } from "./stored.ts";

// Erases a user: tickets that wait, and dead letters. What has ended is deleted by Redis within minutes.
// An event that waits to be published is on its way.

export const eraseRoute = eraseUserRoute("matchmaking");

export function eraseUser(stored: Stored): Handler {
  return eraseUserWith((erasure) => erase(stored, erasure));
}

async function erase(stored: Stored, erasure: Erasure): Promise<Erased> {
  const waiting = await countEvents(stored, erasure.userId);
  if (waiting > 0) return { waiting, rows: {} };
  const rows = { tickets: 0, dead_events: 0 };
  for (const mode of stored.modes) {
    const { tickets, deadEvents } = erasure.dryRun
      ? await countIn(stored, mode, erasure.userId)
      : await eraseIn(stored, mode, erasure);
    rows.tickets += tickets;
    rows.dead_events += deadEvents;
  }
  // A ticket may have been matched in the meantime. From now on none is left that could be.
  return { waiting: await countEvents(stored, erasure.userId), rows };
}

async function countEvents({ redis, modes }: Stored, userId: string): Promise<number> {
  let waiting = 0;
  for (const mode of modes) {
    for await (const { fields } of entriesOf(redis, keysOf(mode).events)) {
      if (names(fields, userId)) waiting++;
    }
  }
  return waiting;
}

const peersSchema = z.array(z.string());

function names({ user_id, peers = "[]" }: Fields, userId: string): boolean {
  return user_id === userId || peersOf(peers).includes(userId);
}

function peersOf(peers: string): string[] {
  try {
    return peersSchema.parse(JSON.parse(peers));
  } catch {
    return []; // somebody else has written the entry
  }
}

interface InMode {
  tickets: number;
  deadEvents: number;
}

async function countIn(stored: Stored, mode: string, userId: string): Promise<InMode> {
  const [tickets, dead] = await Promise.all([
    stored.redis.command(["ZCARD", waitingOf(mode, userId)]),
    findDead(stored, mode, userId),
  ]);
  return { tickets: Number(tickets), deadEvents: dead.length };
}

async function findDead({ redis }: Stored, mode: string, userId: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { entry, fields } of entriesOf(redis, keysOf(mode).dead)) {
    if (names(fields, userId)) found.push(entry);
  }
  return found;
}

async function eraseIn(
  stored: Stored,
  mode: string,
  { userId, pseudonym, operationId, who, reason }: Erasure,
): Promise<InMode> {
  const { dead, operations } = keysOf(mode);
  const reply = await stored.change({
    script: scripts.erase,
    keys: [...commonKeys(mode), waitingOf(mode, userId), joinsOf(mode, userId), dead, operations],
    args: [
      ...[userId, pseudonym, operationId, who, reason, operationsKept],
      ...await findDead(stored, mode, userId),
    ],
  });
  const [tickets, deadEvents] = reply as [number, number];
  return { tickets, deadEvents };
}
