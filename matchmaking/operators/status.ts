import { z } from "@hono/zod-openapi";
import { countErrors, type DeadLetters } from "@kenri/shared/operators/dead_letters.ts";
import { rowFields, serviceStatusRoute, statusFields } from "@kenri/shared/operators/status.ts";
import {
  entriesOf,
  eventIn,
  leasesOf,
  type NamedStream,
} from "@kenri/shared/outbox/stream/stored_events.ts";
import { canLose, readDurability } from "@kenri/shared/redis/durability.ts";
import type { Handler } from "hono";
import { readFigures } from "../figures.ts";
import { counted } from "./counted.ts";
import type { Stored } from "./stored.ts";

const shownAtMost = 20;

const statusSchema = z.object({
  waiting: z.int().openapi({ description: "Events that are not published yet" }),
  oldest_waiting_seconds: z.number().nullable(),
  oldest: z.array(z.object({ event_id: z.uuid().optional(), ...rowFields })),
  ...statusFields,
  redis: z.object({
    version: z.string().nullable(),
    append_only: z.boolean(),
    fsync: z.string().nullable(),
    can_lose: z.string().nullable().openapi({
      description: "What is lost when Redis ends suddenly, in a sentence",
    }),
  }),
  modes: z.array(z.object({
    mode: z.string(),
    tickets: z.int().openapi({ description: "That wait for a match" }),
    oldest_seconds: z.number().nullable(),
    pairable_seconds: z.number().nullable().openapi({
      description: "How long two users have waited who could be matched with each other",
    }),
    events: z.int(),
    dead_events: z.int(),
  })),
  replica: z.object({
    matches: z.int(),
    expired: z.int(),
    cancelled: z.int(),
    invalid: z.int(),
    mean_seconds_to_match: z.number().nullable(),
    mean_pairing_delay_seconds: z.number().nullable(),
  }).openapi({ description: "What this replica has done since it started" }),
}).openapi("MatchmakingStatus");

export type MatchmakingStatus = z.infer<typeof statusSchema>;

export const statusRoute = serviceStatusRoute("matchmaking", "events", statusSchema);

export function status(
  stored: Stored,
  layers: DeadLetters[],
  natsIsAvailable: () => boolean,
): Handler {
  return async () => {
    const [modes, durability, oldest, errors, replica] = await Promise.all([
      readFigures(stored),
      readDurability((args) => stored.redis.command(args)),
      findOldest(stored),
      countErrors(layers),
      counted(),
    ]);
    const waiting = modes.reduce((sum, { events }) => sum + events, 0);
    const oldestMs = Math.max(...modes.map(({ eventsOldestMs }) => eventsOldestMs));
    const answer: MatchmakingStatus = {
      waiting,
      oldest_waiting_seconds: waiting === 0 ? null : oldestMs / 1_000,
      oldest,
      nats: natsIsAvailable(),
      errors,
      redis: { ...durability, can_lose: canLose(durability) ?? null },
      modes: modes.map(({ mode, waiting, oldestMs, pairableMs, events, dead }) => ({
        mode,
        tickets: waiting,
        oldest_seconds: waiting === 0 ? null : oldestMs / 1_000,
        pairable_seconds: pairableMs === 0 ? null : pairableMs / 1_000,
        events,
        dead_events: dead,
      })),
      replica,
    };
    return Response.json(answer);
  };
}

async function findOldest(stored: Stored): Promise<MatchmakingStatus["oldest"]> {
  const found = await Promise.all(stored.streams.map((stream) => oldestOf(stored, stream)));
  return found.flat().sort((a, b) => a.created_at < b.created_at ? -1 : 1).slice(0, shownAtMost);
}

async function oldestOf(
  stored: Stored,
  { events }: NamedStream,
): Promise<MatchmakingStatus["oldest"]> {
  const leaseOf = await leasesOf(stored, events, shownAtMost);
  const rows: MatchmakingStatus["oldest"] = [];
  for await (const { entry, atMs, fields } of entriesOf(stored.redis, events)) {
    const event = eventIn(stored, events, fields);
    rows.push({
      ...(event ? { event_id: event.id } : {}),
      aggregate_key: fields["ticket_id"] ?? "-",
      created_at: new Date(atMs).toISOString(),
      last_error: event ? null : "an entry that can't be read",
      ...leaseOf(entry),
    });
    if (rows.length === shownAtMost) break;
  }
  return rows;
}
