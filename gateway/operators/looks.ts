import type { Looks, ServiceStatus } from "@kenri/shared/operators/looks.ts";
import { age } from "@kenri/shared/ops/text.ts";

// What operators see of this service. It has no tables, so its state is that of one replica.

export interface GatewayStatus extends ServiceStatus {
  nats: boolean;
  events_age_seconds: number | null;
  watermark_age_seconds: number | null;
  staleness_seconds: number;
  known_users: number;
  ended_sessions: number;
  failing: string[];
}

export const looks: Looks<GatewayStatus> = {
  status: {
    queues: [],
    figures: (status) => ({
      "account events read": known(status.events_age_seconds),
      "account events complete": known(status.watermark_age_seconds),
      "users known": status.known_users,
      "ended sessions known": status.ended_sessions,
      "services that fail": status.failing.join(", ") || "none",
    }),
    problems: ({ watermark_age_seconds: watermark, staleness_seconds, failing }) => [
      ...(watermark === null || watermark > staleness_seconds
        ? ["gateway does not know whether it has all account events, and asks account each time"]
        : []),
      ...failing.map((name) => `gateway does not ask ${name} for a while, because it failed`),
    ],
  },
};

function known(seconds: number | null): string {
  return seconds === null ? "never" : `${age(seconds)} ago`;
}
