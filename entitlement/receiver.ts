import { ErrorCode, NatsError } from "nats";
import { reasonOf, unavailable } from "@kenri/shared/errors";
import type { NatsLink } from "@kenri/shared/jetstream";
import { readReceipt, type Receipt, subjectOfChecks } from "@kenri/shared/receipts";

export type AskReceiver = (eventIds: string[], withinMs?: number) => Promise<Receipt>;

const answerWithinMs = 5_000;

// Asks the notification service, over NATS, which of these events it has not received.
export function receiverOver(link: NatsLink, subject: string): AskReceiver {
  return async (eventIds, withinMs = answerWithinMs) => {
    const { connection } = link.current ?? {};
    if (!connection) throw unavailable("NATS can't be reached");
    try {
      const question = JSON.stringify({ event_ids: eventIds });
      const options = { timeout: withinMs };
      const answer = await connection.request(subjectOfChecks(subject), question, options);
      return readReceipt(answer.data);
    } catch (error) {
      throw unavailable(`the notification service can't be asked: ${describe(error)}`);
    }
  };
}

function describe(error: unknown): string {
  const code = error instanceof NatsError ? error.code : "";
  if (code === ErrorCode.NoResponders) return "nobody answers";
  if (code === ErrorCode.Timeout) return "it does not answer in time";
  return reasonOf(error);
}
