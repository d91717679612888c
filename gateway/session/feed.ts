import { type AccountEventFields, decodeAccountEvent } from "@kenri/proto/account/decode.ts";
import { ReadOnlyInbox } from "@kenri/shared/inbox/read_only_inbox.ts";
import type { NatsLink } from "@kenri/shared/nats/link.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { counter, countersBy } from "@kenri/shared/telemetry/metrics.ts";
import type { AccountClient } from "../account_client.ts";
import type { FeedOptions } from "../stream_settings.ts";
import type { KnownAccounts } from "./known_accounts.ts";

// The events of accounts, by which this replica learns within milliseconds that a user was suspended
// or that a session ended.

const events = counter(
  "gateway_account_events_total",
  "events of accounts that were received, by outcome",
  ["outcome"],
);

export interface FeedParts {
  link: NatsLink;
  log: Log;
  known: KnownAccounts;
  account: AccountClient;
}

export function accountFeed(
  { link, log, known, account }: FeedParts,
  { stream, subject }: FeedOptions,
): ReadOnlyInbox<AccountEventFields> {
  return new ReadOnlyInbox({
    name: "account events",
    link,
    log,
    stream,
    watermarksOf: subject,
    decode: ({ data }) => decodeAccountEvent(data),
    load: async () => {
      known.forgetUsers();
      for await (const { session_id, expires_at } of account.ended()) {
        known.end(session_id, Date.parse(expires_at));
      }
    },
    take: (event) => known.take(event),
    counts: countersBy(
      ["handled", "duplicate", "unreadable"] as const,
      (outcome) => events.labels(outcome),
    ),
  });
}
