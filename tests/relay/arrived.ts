// All events have arrived in the stream.
import {
  assertAllStored,
  assertOnceAndInOrder,
  type OutboxState,
  storedEvents,
  untilAll,
} from "../support/outbox.ts";

/** Every row is PUBLISHED: each event once, in the order of its key, and where its row says. */
export async function untilArrived(
  { ownerUrl, natsUrl, stream }: { ownerUrl: string; natsUrl: string; stream: string },
): Promise<OutboxState[]> {
  const rows = await untilAll(ownerUrl, "PUBLISHED", "FAILED");
  const stored = await storedEvents(natsUrl, stream);
  assertOnceAndInOrder(stored, rows);
  assertAllStored(stored, rows);
  return rows;
}
