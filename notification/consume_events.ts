import type { NatsLink } from "@kenri/shared/nats/link.ts";
import { eachSession } from "@kenri/shared/nats/sessions.ts";
import { ensureEvents, type EventOptions } from "./durables.ts";
import { Intake, type IntakeParts } from "./intake.ts";
import type { Durable } from "@kenri/shared/nats/pull.ts";
import { program } from "./program.ts";

export interface ConsumeParts extends IntakeParts {
  link: NatsLink;
}

export interface ConsumeOptions extends EventOptions {
  predecessorWaitMs: number;
}

// From the stream to notifications.
export function consumeEvents(
  parts: ConsumeParts,
  options: ConsumeOptions,
  stop: AbortSignal,
): Promise<void> {
  return eachSession(parts.link, {
    name: "consumer",
    complaint: "Events can't be consumed, trying again: {reason}",
    log: parts.log,
    ensure: (manager, mayMake) => ensureEvents(manager, options, mayMake),
    work: ({ session }, works) => {
      const durable = {
        connection: session.connection,
        service: program.name,
        stream: options.stream.name,
        name: options.consumer.durable,
        refused: session.refused,
      };
      return consumeFrom(durable, parts, options, session.signal, works);
    },
  }, stop);
}

async function consumeFrom(
  durable: Durable,
  parts: IntakeParts,
  { consumer, predecessorWaitMs }: ConsumeOptions,
  signal: AbortSignal,
  onPulled: () => void,
): Promise<void> {
  const intake = new Intake(parts, { ackWaitMs: consumer.ackWaitMs, predecessorWaitMs });
  try {
    while (!signal.aborted) {
      await intake.fill(durable, signal);
      onPulled();
    }
  } finally {
    await intake.empty();
  }
}
