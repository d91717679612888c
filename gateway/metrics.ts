import { counter, countersBy, gauge } from "@kenri/shared/telemetry/metrics.ts";
import { onScrape } from "@kenri/shared/telemetry/scrape.ts";
import type { Feed } from "./session/check.ts";
import type { KnownAccounts } from "./session/known_accounts.ts";

const logins = counter(
  "gateway_login_total",
  "logins by how they ended: `completed`, `refused`, `unavailable` (the issuer or the account service), `error`",
  ["result"],
);

export const loginsBy = countersBy(
  ["completed", "refused", "unavailable", "error"] as const,
  (result) => logins.labels(result),
);

export type LoginResult = keyof typeof loginsBy;

const feedAge = gauge(
  "gateway_account_events_age_seconds",
  "time since all events of accounts in the stream had been received; +Inf before",
);
const watermarkAge = gauge(
  "gateway_account_watermark_age_seconds",
  "time since the account service last said that the stream has every event; +Inf before",
);
const users = gauge("gateway_known_users_current", "users whose state this replica knows");
const sessions = gauge(
  "gateway_ended_sessions_current",
  "sessions that ended early, as far as this replica knows",
);

export function observeKnown(feed: Feed, known: Pick<KnownAccounts, "counts">): void {
  onScrape(() => {
    feedAge.set(feed.ageMs / 1_000);
    watermarkAge.set(feed.watermarkAgeMs / 1_000);
    users.set(known.counts.users);
    sessions.set(known.counts.endedSessions);
  });
}
