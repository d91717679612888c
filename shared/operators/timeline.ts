import { z } from "@hono/zod-openapi";
import type { ScopedRoute } from "../http/openapi.ts";
import { lookRoute } from "./look_route.ts";
import { ApiError } from "../http/errors.ts";
import { fieldSchema, problemsOf } from "../http/fields.ts";

// What happened to an event, step by step. Each service reports the steps that it has seen, in one
// form.

const stepSchema = z.object({
  at: z.string(),
  step: z.string(),
  begun_at: z.string().nullish(),
  worker: z.string().nullish(),
  error: z.string().nullish(),
  stream_seq: z.int().nullish(),
  who: z.string().nullish(),
  reason: z.string().nullish(),
  order_id: z.uuid().nullish().openapi({
    description: "If the step belongs to one of the sends of the event",
  }),
  to: z.string().nullish().openapi({ description: "Where that send goes" }),
}).openapi("TimelineStep");

const eventSchema = z.object({
  event_id: z.uuid().nullable().openapi({
    description:
      "Null for a reservation that has no event yet or will never have one, and for an order of a caller",
  }),
  reservation_id: z.uuid().nullish().openapi({
    description: "If the change was reserved for a time; the steps then begin with the reservation",
  }),
  order_id: z.uuid().nullish().openapi({ description: "If the timeline is that of one send" }),
  user_id: z.string().nullable(),
  stock_keeping_unit: z.string().nullable(),
  version: z.int().nullable(),
  type: z.string().nullable(),
  status: z.string(),
  trace_id: z.string().nullable(),
  idempotency_key: z.string().nullish(),
  caller: z.string().nullish(),
  attempt_count: z.int(),
  next_retry_at: z.string().nullable(),
  steps: z.array(stepSchema),
}).openapi("TimelineEvent");

export type Step = z.infer<typeof stepSchema>;
export type EventTimeline = z.infer<typeof eventSchema>;

const answeredSchema = z.object({
  idempotency_key: z.string(),
  caller: z.string(),
  at: z.string(),
  expires_at: z.string(),
  status: z.int(),
  body: z.unknown(),
}).openapi("StoredAnswer");

export type StoredAnswer = z.infer<typeof answeredSchema>;

const timelineSchema = z.object({ events: z.array(eventSchema) });
const keyedSchema = timelineSchema.extend({
  key: answeredSchema.optional().openapi({ description: "The answer stored under the key" }),
});

export type Timeline = z.infer<typeof keyedSchema>;

export const maxEvents = 100;

const uuid = z.uuid();
const eventIds = z.string().transform((list) => list.toLowerCase().split(","))
  .refine((ids) => ids.length <= maxEvents, `must be at most ${maxEvents}`)
  .refine(
    (ids) => ids.every((id) => uuid.safeParse(id).success),
    "must be UUIDs, separated by commas",
  ).openapi({ type: "string", description: "One or more, separated by commas" });

const storedKeys = z.string().regex(
  /^([\x21-\x7e]{1,300} )?[\x21-\x7e]{1,255}$/,
  "must be a key, or a caller's name, a space, and the key",
).openapi({ description: "The key; with a named caller the name, a space, and the key" });

const ownId = z.uuid("must be a UUID").transform((id) => id.toLowerCase());

const idSchemas = {
  event_id: eventIds,
  user_id: fieldSchema(),
  idempotency_key: storedKeys,
  reservation_id: ownId,
  order_id: ownId,
};
export type TimelineBy = keyof typeof idSchemas;

export type Asked<Allowed extends TimelineBy> = {
  [Name in Allowed]: { by: Name; value: z.output<(typeof idSchemas)[Name]> };
}[Allowed];

export function timelineRoute(service: string, allowed: readonly TimelineBy[]): ScopedRoute {
  const schema = allowed.includes("idempotency_key") ? keyedSchema : timelineSchema;
  const query = z.object(
    Object.fromEntries(allowed.map((name) => [name, idSchemas[name].optional()])),
  );
  return lookRoute({
    path: `/debug/${service}/timeline`,
    summary: "Timeline of events",
    description: `What happened to events in this service, by one of ${allowed.join(", ")}`,
    query,
    answer: schema.openapi("Timeline"),
    answers: `At most ${maxEvents} events, the newest first; none is no error`,
    invalid: "Not exactly one of them is given, or it is invalid",
  });
}

// Exactly one of the names that are allowed.
export function readAsked<Allowed extends TimelineBy>(
  query: Record<string, string>,
  allowed: readonly Allowed[],
): Asked<Allowed> {
  const given = allowed.filter((name) => query[name] !== undefined);
  const [by] = given;
  if (by === undefined || given.length > 1) {
    throw new ApiError("BAD_REQUEST", `exactly one of ${allowed.join(", ")} is required`);
  }
  const value = z.object({ [by]: idSchemas[by] }).safeParse(query);
  if (!value.success) throw new ApiError("BAD_REQUEST", problemsOf(value.error));
  return { by, value: value.data[by] } as Asked<Allowed>;
}

// Sorted by time; steps of the same time stay in the given order.
export function inOrder(steps: Step[]): Step[] {
  return steps.toSorted((a, b) => a.at < b.at ? -1 : a.at > b.at ? 1 : 0);
}
