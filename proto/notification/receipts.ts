import { z } from "zod";

// With these messages the entitlement service asks the notification service over NATS which events
// it has not received. Their subject is derived from that of the events and belongs to no stream.

export function subjectOfChecks(subject: string): string {
  return `${subject}.check`;
}

export const maxPerCheck = 1_000;

const checkSchema = z.object({ event_ids: z.array(z.uuid()).max(maxPerCheck) });

const receiptSchema = z.object({
  missing: z.array(z.uuid()), // not received
  dead: z.array(z.uuid()), // not received, and JetStream no longer delivers them
  delivered_up_to: z.int(), // sequence of the last message that the stream has delivered
  undelivered: z.int(), // number of messages after it
  // Replicas of the previous release do not send these two.
  settled_up_to: z.int().default(0), // no message up to this sequence will be redelivered
  unsettled: z.int().default(0), // number of messages after it that may be redelivered
  remembered_since: z.string(), // records of events that occurred earlier have been deleted
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
