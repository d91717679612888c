// The receiver of webhooks that misbehaves on command, and what a subscriber checks of a webhook.
import { Webhook } from "standardwebhooks";
import type { Received } from "../../tools/receiver/receiver.ts";

export { type Received, type Receiver, startReceiver } from "../../tools/receiver/receiver.ts";

export interface ReceivedEvent {
  type: string;
  timestamp: string;
  data: Record<string, unknown>;
}

/** What the webhook says; throws if its signature is not of this secret, or too old. */
export function verified({ headers, body }: Received, secret: string): ReceivedEvent {
  return new Webhook(secret).verify(body, Object.fromEntries(headers)) as ReceivedEvent;
}
