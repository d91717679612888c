import {
  type EventTimeline,
  maxEvents,
  readAsked,
  timelineRoute,
} from "@kenri/shared/operators/timeline.ts";
import {
  entriesOf,
  type Entry,
  eventIn,
  type Lease,
  leasesOf,
} from "@kenri/shared/outbox/stream/stored_events.ts";
import type { Handler } from "hono";
import { timelineBy } from "./looks.ts";
import type { Stored } from "./stored.ts";

// The events that are still in Redis: they wait to be published, or could not be. Redis deletes an
// event once it is published, and from then on only its receivers know it.

export const eventsRoute = timelineRoute("matchmaking", timelineBy);

export function timeline(stored: Stored): Handler {
  return async ({ req }) => {
    const asked = readAsked(req.query(), timelineBy);
    const isAsked = (event: EventTimeline) =>
      asked.by === "event_id"
        ? asked.value.includes(event.event_id ?? "")
        : event.user_id === asked.value;
    const found: EventTimeline[] = [];
    for await (const event of everyEvent(stored)) {
      if (isAsked(event)) found.push(event);
    }
    found.sort((a, b) => firstAt(b).localeCompare(firstAt(a)));
    return Response.json({ events: found.slice(0, maxEvents) });
  };
}

const firstAt = ({ steps }: EventTimeline) => steps[0]?.at ?? "";

async function* everyEvent(stored: Stored): AsyncGenerator<EventTimeline> {
  for (const { events, dead } of stored.streams) {
    const leaseOf = await leasesOf(stored, events, 10_000);
    for await (const entry of entriesOf(stored.redis, events)) {
      yield* toTimeline(stored, events, entry, leaseOf(entry.entry));
    }
    for await (const entry of entriesOf(stored.redis, dead)) {
      yield* toTimeline(stored, dead, entry, "dead");
    }
  }
}

// None if the entry can't be read: then it has no id.
function* toTimeline(
  stored: Stored,
  stream: string,
  { fields, atMs }: Entry,
  lease: Lease | "dead",
): Generator<EventTimeline> {
  const event = eventIn(stored, stream, fields);
  if (!event) return;
  const { occurred_ms, dead_error: error = null, dead_attempts, user_id = null } = fields;
  const begun = { at: new Date(Number(occurred_ms)).toISOString(), step: "CHANGED" };
  const gaveUp = { at: new Date(atMs).toISOString(), step: "GAVE_UP", error };
  const isDead = lease === "dead";
  yield {
    event_id: event.id,
    user_id,
    stock_keeping_unit: null,
    version: null,
    type: event.content.event_type,
    trace_id: fields["trace_id"] || null,
    status: isDead ? "FAILED" : lease.status,
    attempt_count: isDead ? Number(dead_attempts) : lease.attempt_count,
    next_retry_at: isDead ? null : lease.next_retry_at,
    steps: isDead ? [begun, gaveUp] : [begun],
  };
}
