import { createInbox, ErrorCode, NatsError } from "nats";
import { unavailable } from "@kenri/shared/http/errors.ts";
import { reasonOf } from "@kenri/shared/process/reason.ts";
import type { NatsLink, Session } from "@kenri/shared/nats/link.ts";
import { inboxOfAnswers } from "@kenri/shared/nats/connection.ts";
import { readReceipt, type Receipt, subjectOfChecks } from "@kenri/proto/notification/receipts.ts";

export type AskReceiver = (eventIds: string[], withinMs?: number) => Promise<Receipt>;

const answerWithinMs = 5_000;
const answers = inboxOfAnswers("entitlement");

// Asks the notification service, over NATS, which of these events it has not received.
export function receiverOver(link: NatsLink, subject: string): AskReceiver {
  return async (eventIds, withinMs = answerWithinMs) => {
    const session = link.current;
    if (!session) throw unavailable("NATS can't be reached");
    try {
      const question = JSON.stringify({ event_ids: eventIds });
      const options = { timeout: withinMs, noMux: true, reply: createInbox(answers) };
      const answer = await whileConnected(
        session,
        session.connection.request(subjectOfChecks(subject), question, options),
      );
      return readReceipt(answer.data);
    } catch (error) {
      throw unavailable(`can't ask the notification service: ${describe(error)}`);
    }
  };
}

// The client library never settles a request with its own inbox once the connection is lost.
async function whileConnected<Answer>(
  { connection, signal }: Session,
  asked: Promise<Answer>,
): Promise<Answer> {
  const lost = Promise.withResolvers<never>();
  const fail = () => {
    if (connection.isClosed()) lost.reject(new Error("the connection to NATS was lost"));
  };
  signal.addEventListener("abort", fail, { once: true });
  try {
    return await Promise.race([asked, lost.promise]);
  } finally {
    signal.removeEventListener("abort", fail);
  }
}

function describe(error: unknown): string {
  const code = error instanceof NatsError ? error.code : "";
  if (code === ErrorCode.NoResponders) return "no replica answers";
  if (code === ErrorCode.Timeout) return "it did not answer in time";
  return reasonOf(error);
}
