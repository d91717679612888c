import { z } from "zod";

// How the entitlement service asks the notification service, over NATS, which events it has not
// received. The subject stands beside that of the events and belongs to no stream.

export function subjectOfChecks(subject: string): string {
  return `${subject}.check`;
}

export const maxPerCheck = 1_000;

const checkSchema = z.object({ event_ids: z.array(z.uuid()).max(maxPerCheck) });

const receiptSchema = z.object({
  missing: z.array(z.uuid()), // not received
  dead: z.array(z.uuid()), // not received, and a dead letter that JetStream gave up
  delivered_up_to: z.int(), // the last message of the stream that was given out
  undelivered: z.int(), // how many come after it
  // A replica of the release before this does not say these two.
  settled_up_to: z.int().default(0), // no message up to this one will be delivered again
  unsettled: z.int().default(0), // how many after it were delivered, and may be delivered again
  remembered_since: z.string(), // of what occurred earlier it can't be told
});

export type Receipt = z.infer<typeof receiptSchema>;

export function readCheck(data: Uint8Array): string[] {
  return checkSchema.parse(JSON.parse(new TextDecoder().decode(data))).event_ids;
}

export function readReceipt(data: Uint8Array): Receipt {
  const answer = JSON.parse(new TextDecoder().decode(data));
  if (typeof answer?.error === "string") throw new Error(answer.error);
  return receiptSchema.parse(answer);
}
