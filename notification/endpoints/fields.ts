import { z } from "@hono/zod-openapi";
import { fieldSchema } from "@kenri/shared/http/fields.ts";
import { typeOfName as typesOfRights } from "@kenri/proto/entitlement/event_types.ts";
import { typeOfName as typesOfMatchmaking } from "@kenri/proto/matchmaking/event_types.ts";
import { typeOfName as typesOfPoints } from "@kenri/proto/points/event_types.ts";
import { unnotifiedTypes } from "../remember_unnotified.ts";
import { orderings } from "./endpoint.ts";

// What a caller may choose of an endpoint.

// The names of all events of which this service notifies users.
export const eventTypes: string[] = [
  ...typesOfRights.keys(),
  ...typesOfPoints.keys(),
  ...typesOfMatchmaking.keys(),
].filter((name) => !unnotifiedTypes.has(name));

// Judged further by the sender, which knows where it may send.
export function urlSchema(): z.ZodURL {
  return z.url({
    protocol: /^https?$/,
    error: ({ input }) => input === undefined ? "is required" : "must be an http or https url",
  }).max(2_048, "must have at most 2048 characters").openapi({
    description:
      "Where webhooks are sent. A name is resolved for each send, and must lead to public addresses",
  });
}

// deno-lint-ignore explicit-module-boundary-types
export function eventTypesSchema() {
  return z.array(z.enum(eventTypes, `must be one of ${eventTypes.join(", ")}`), "must be a list")
    .min(1, "must not be empty; without it, all events are sent")
    .max(100, "must have at most 100 entries")
    .transform((names) => [...new Set(names)].sort())
    .openapi({
      type: "array",
      items: { type: "string", enum: eventTypes },
      description: "The events that are sent; without it, all",
    });
}

// deno-lint-ignore explicit-module-boundary-types
export const otherFields = () => ({
  event_types: eventTypesSchema().nullish(),
  ordering: z.enum(orderings, `must be one of ${orderings.join(", ")}`).nullish().openapi({
    description:
      "What must have ended before the next webhook is sent: `key` (the default), the version " +
      "before it of the same user and item; `endpoint`, all before it; `none`, nothing",
  }),
  description: fieldSchema().nullish(),
  at_once: z.number("must be a number").int("must be a whole number").min(1, "must be at least 1")
    .max(1_000, "must be at most 1000").nullish().openapi({
      type: "integer",
      minimum: 1,
      maximum: 1_000,
      description: "The most webhooks that are sent at the same time; the default is a setting",
    }),
  user_id: fieldSchema().nullish().openapi({
    description: "Only the events of this user are sent; without it, those of all users",
  }),
});
