import { z } from "@hono/zod-openapi";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { lookRoute } from "@kenri/shared/operators/look_route.ts";
import { metrics } from "@kenri/shared/telemetry/metrics.ts";
import type { Handler } from "hono";
import type { Feed } from "../session/check.ts";
import type { KnownAccounts } from "../session/known_accounts.ts";
import type { GatewayStatus } from "./looks.ts";

const statusSchema = z.object({
  nats: z.boolean(),
  events_age_seconds: z.number().nullable().openapi({
    description: "Since this replica had received all events of accounts in the stream",
  }),
  watermark_age_seconds: z.number().nullable().openapi({
    description: "Since the account service last said that the stream has every event",
  }),
  staleness_seconds: z.number().openapi({
    description: "From this age on, each request asks the account service",
  }),
  known_users: z.int(),
  ended_sessions: z.int(),
  failing: z.array(z.string()).openapi({
    description: "Services that are not asked for a while, because they failed",
  }),
}).openapi("GatewayStatus");

export const statusRoute: ScopedRoute = lookRoute({
  path: "/debug/gateway/status",
  summary: "Status of this replica",
  description: "How current it is, and which services behind it fail",
  answer: statusSchema,
  answers: "The state at this moment",
});

export interface StatusParts {
  natsIsAvailable: () => boolean;
  feed: Feed;
  known: Pick<KnownAccounts, "counts">;
  stalenessMs: number;
}

export function status({ natsIsAvailable, feed, known, stalenessMs }: StatusParts): Handler {
  return async () => {
    const { users, endedSessions } = known.counts;
    const status: GatewayStatus = {
      nats: natsIsAvailable(),
      events_age_seconds: seconds(feed.ageMs),
      watermark_age_seconds: seconds(feed.watermarkAgeMs),
      staleness_seconds: stalenessMs / 1_000,
      known_users: users,
      ended_sessions: endedSessions,
      failing: await openBreakers(),
    };
    return Response.json(status);
  };
}

const seconds = (ms: number) => Number.isFinite(ms) ? ms / 1_000 : null;

async function openBreakers(): Promise<string[]> {
  const found = await metrics.getSingleMetric("kenri_breaker_open")?.get();
  return (found?.values ?? []).filter(({ value }) => value === 1)
    .map(({ labels }) => `${(labels as Record<string, unknown>)["service"]}`);
}
