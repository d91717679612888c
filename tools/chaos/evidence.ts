// Everything that is known at the end of a run: what clients asked and were answered, what the
// tables contain, what the channel sent, and which faults were injected.
import { ask } from "../servers/asking.ts";
import type { Receipt } from "./invariants/order_invariants.ts";
import type { AccountTables } from "./invariants/account_tables.ts";
import { readMatchEvents, readMatchStore } from "./invariants/match_tables.ts";
import type { AllTables } from "./invariants/tables.ts";
import type { AccountEvidence } from "./account_clients.ts";
import type { SentRequest } from "./clients.ts";
import type { Healing } from "./heal.ts";
import type { Injected } from "./inject.ts";
import type { MatchEvidence, MatchNotification } from "./match_checks.ts";
import { playerUser } from "./match_clients.ts";
import { marker, type Poison } from "./messages.ts";
import type { Run } from "./replica.ts";
import type { ServiceLog } from "./service_log.ts";
import type { Stack } from "./stack.ts";
import type { Stall } from "./stalls.ts";
import { matchStream } from "./replica_settings.ts";
import type { Wipes } from "./wipes.ts";

export interface Evidence {
  requests: SentRequest[];
  tables: AllTables;
  accounts: AccountEvidence;
  accountTables: AccountTables;
  matches: MatchEvidence;
  givenUp: GivenUp[];
  log: ServiceLog;
  injected: Injected[];
  healing: Healing;
  /** The stalls of the run's own process. */
  stalls: Stall[];
  poison: Poison[];
  /** What receivers got, in its order. */
  received: Receipt[];
  runs: Run[];
  /** Other texts that must contain no secret, by their origin: metrics and stored errors. */
  said: Record<string, string>;
}

/** A message that JetStream no longer delivers. A copy of it is kept if the stream still had it. */
export interface GivenUp {
  kind: "MAX_DELIVERIES" | "MSG_TERMINATED";
  poison: string | null;
  has_copy: boolean;
}

export function readGivenUp(notificationUrl: string): Promise<GivenUp[]> {
  return ask<GivenUp>(
    notificationUrl,
    `select kind, message_headers->$1->>0 as poison, message_body is not null as has_copy
     from notification_nats_dlq`,
    [marker],
  );
}

export async function readMatches(
  stack: Stack,
  { calls }: Pick<MatchEvidence, "calls">,
  { stores, streams }: Wipes,
): Promise<MatchEvidence> {
  return {
    calls,
    store: await readMatchStore(stack.redis.server.url),
    stream: await readMatchEvents(stack.nats.server.url, matchStream),
    wipedStores: stores,
    wipedStreams: streams,
    notifications: await ask<MatchNotification>(
      stack.ownerUrl("notification"),
      "select event_id, user_id, type, status from notifications where starts_with(user_id, $1)",
      [playerUser],
    ),
  };
}

export async function readSaid(stack: Stack): Promise<Evidence["said"]> {
  const said: Evidence["said"] = {};
  for (const { name, url } of stack.replicas) {
    said[`metrics of ${name}`] = await fetch(`${url}/metrics`).then((answer) => answer.text());
  }
  const errors = {
    entitlement: `select last_error as error from outbox_events where last_error is not null
      union select error from outbox_attempts where error is not null
      union select last_error from point_reservations where last_error is not null
      union select error from reservation_attempts where error is not null
      union select reason || ' ' || who || ' ' || items::text from operations`,
    notification: `select last_error as error from notifications where last_error is not null
      union select error_message from notification_dlq
      union select reason from notification_nats_dlq where reason is not null
      union select last_error_msg from outbox_orders where last_error_msg is not null
      union select error from order_attempts where error is not null`,
    account: `select last_error as error from outbox_events where last_error is not null
      union select error from outbox_attempts where error is not null
      union select reason || ' ' || who || ' ' || items::text from operations`,
  };
  for (const service of ["entitlement", "notification", "account"] as const) {
    const rows = await ask<{ error: string }>(stack.ownerUrl(service), errors[service]);
    said[`errors of ${service}`] = rows.map(({ error }) => error).join("\n");
  }
  return said;
}
