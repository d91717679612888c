import { reasonOf } from "@kenri/shared/process/reason.ts";
import { StartRefused } from "@kenri/shared/process/start_refused.ts";
import type { NatsLink } from "@kenri/shared/nats/link.ts";
import { Provisions } from "@kenri/shared/nats/provisions.ts";
import { pause } from "@kenri/shared/process/signals.ts";
import { warnOfLoss } from "@kenri/shared/nats/streams.ts";
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

const retryMs = 1_000;

// From the stream to notifications. Like the relay, it starts again with each new connection, and
// if the stream or the consumer no longer exists.
export async function consumeEvents(
  parts: ConsumeParts,
  options: ConsumeOptions,
  stop: AbortSignal,
): Promise<void> {
  const { link, log } = parts;
  const provisions = new Provisions(link, "consumer");
  let warned = false;
  let reported = "";
  while (!stop.aborted) {
    const session = await link.session(stop);
    if (!session) return;
    try {
      const info = await provisions.ensure(
        session,
        (manager, mayMake) => ensureEvents(manager, options, mayMake),
      );
      if (!warned) warnOfLoss(info, log);
      warned = true;
      const durable = {
        connection: session.connection,
        service: program.name,
        stream: options.stream.name,
        name: options.consumer.durable,
        refused: session.refused,
      };
      await consumeFrom(durable, parts, options, session.signal, () => reported = "");
    } catch (error) {
      if (error instanceof StartRefused) throw error;
      const reason = reasonOf(error);
      if (reason !== reported && !session.signal.aborted) {
        log.warn("Events can't be consumed, trying again: {reason}", { reason });
      }
      reported = reason;
      await pause(retryMs, stop);
    }
  }
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
