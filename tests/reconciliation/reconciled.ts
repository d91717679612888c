// Changes, some of which were not received, and a replica that reconciles.
import { type AskReceiver, receiverOver } from "../../entitlement/reconciliation/ask.ts";
import { runReconciliation } from "../../entitlement/reconciliation/run.ts";
import { NatsLink } from "../../shared/nats/link.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { Wakeup } from "../../shared/process/signals.ts";
import { grant, revoke } from "../support/api.ts";
import { ask } from "../support/entitlement.ts";
import { untilSent } from "../support/notification.ts";
import { collectingLog } from "../support/relays.ts";
import type { Stack } from "../support/stack.ts";
import { natsUrl } from "../support/streams.ts";

// Otherwise the stream would drop republished events as duplicates.
export const shortWindow = {
  entitlement: {
    ENTITLEMENT_NATS_DUPLICATE_WINDOW: "100ms",
    ENTITLEMENT_RECONCILE_ENABLED: "false",
  },
  notification: { NOTIFICATION_NATS_DUPLICATE_WINDOW: "100ms" },
};
export const path = "/operations/entitlement/reconcile";
export const since = "2026-01-01T00:00:00Z";
export const all = { since, grace_seconds: 0 };

/** Changes Ann's book twice, her film and Bob's book, and waits until all are sent. */
export async function changeSome({ entitlement, place }: Stack): Promise<void> {
  await grant(entitlement.url, { user_id: "ann" });
  await revoke(entitlement.url, { user_id: "ann" });
  await grant(entitlement.url, { user_id: "ann", stock_keeping_unit: "film" });
  await grant(entitlement.url, { user_id: "bob" });
  await untilSent(place, 4);
  // The duplicate window is over: the stream takes these events again.
  await new Promise((over) => setTimeout(over, 150));
}

/** Deletes all traces of a received message. */
export async function lose({ place }: Stack, key: string, version: number): Promise<void> {
  const [lost] = await ask<{ event_id: string }>(
    place.ownerUrl,
    "delete from notifications where aggregate_key = $1 and version = $2 returning event_id",
    [key, version],
  );
  await ask(place.ownerUrl, "delete from processed_events where event_id = $1", [lost?.event_id]);
}

/** Runs the loop of one replica in this process. Returns its log when it has ended. */
export async function startLoop(
  { entitlement }: Stack,
  stop: AbortSignal,
  { log, lines }: ReturnType<typeof collectingLog> = collectingLog(),
  asking: (receiver: AskReceiver) => AskReceiver = (receiver) => receiver,
): Promise<string[]> {
  const database = openDatabase(entitlement.database.serviceUrl, "reconciliation");
  const link = new NatsLink({ urls: natsUrl }, "reconciliation", collectingLog().log);
  await link.session(stop);
  const parts = {
    database,
    ask: asking(receiverOver(link, entitlement.subject)),
    wakeRelay: new Wakeup(),
    log,
  };
  await runReconciliation(parts, { intervalMs: 200, graceSeconds: 0 }, stop);
  await link.close();
  await database.end();
  return lines;
}
