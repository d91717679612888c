// Dead letters as operators list them and send them back.
import { aggregateKeyOf } from "../../proto/entitlement/aggregate_key.ts";
import { ask } from "../../tools/servers/asking.ts";
import { bodyOf, type Event } from "../support/events.ts";
import { look } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

export interface DeadLetter {
  layer: string;
  id: string;
  event_id: string | null;
  error: string;
  // deno-lint-ignore no-explicit-any
  payload: any;
}

export const ofEntitlement = "/debug/entitlement/dead-letters";
export const ofNotification = "/debug/notification/dead-letters";
export const sendBackEvents = "/operations/entitlement/dead-letters/send-back";
export const sendBack = "/operations/notification/dead-letters/send-back";

export function outcomes({ dead_letters }: { dead_letters: { outcome: string }[] }): string[] {
  return dead_letters.map(({ outcome }) => outcome);
}

export async function untilDead(url: string, path: string, count: number): Promise<DeadLetter[]> {
  await until(`there are ${count} dead letters`, async () => {
    return (await look(url, path)).dead_letters.length === count;
  });
  return (await look(url, path)).dead_letters;
}

/** Stores what the service captures when JetStream gives up on a message. */
export async function capture(ownerUrl: string, event: Event): Promise<void> {
  const key = aggregateKeyOf(event.userId, event.stockKeepingUnit);
  await ask(
    ownerUrl,
    `insert into notification_nats_dlq
       (advisory_id, kind, stream, consumer, stream_seq, advised_at, message_headers, message_body)
     values ($1, 'MAX_DELIVERIES', 'stream', 'consumer', 1, now(), $2, $3)`,
    [
      crypto.randomUUID(),
      { "Nats-Msg-Id": [event.eventId], "aggregate_key": [key] },
      bodyOf(event),
    ],
  );
}
