import { encodeAccountEvent } from "@kenri/proto/account/encode.ts";
import { typeOfName } from "@kenri/proto/account/event_types.ts";
import type { WantedStream } from "@kenri/shared/nats/streams.ts";
import type { EventTypes } from "@kenri/shared/outbox/event_types.ts";
import type { RelayOptions } from "@kenri/shared/outbox/relay.ts";
import { relayTable, type TableParts } from "@kenri/shared/outbox/table_source.ts";
import { publishDelay } from "./metrics.ts";
import { outbox } from "./outbox.ts";

// Publishes the outbox.
export function publishEvents(
  parts: Omit<TableParts, "outbox">,
  options: Omit<RelayOptions, "types">,
  stop: AbortSignal,
): Promise<void> {
  const observeDelay = (seconds: number) => publishDelay.observe(seconds);
  const types = eventTypes(options.stream);
  return relayTable({ ...parts, outbox, observeDelay }, { ...options, types }, stop);
}

export function eventTypes({ subjects: [subject] }: Pick<WantedStream, "subjects">): EventTypes {
  const type = {
    subject,
    encode: (id: string, payload: Record<string, unknown>) => ({
      body: encodeAccountEvent(id, payload),
    }),
  };
  return new Map([...typeOfName.keys()].map((name) => [name, type]));
}
