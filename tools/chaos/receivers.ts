// The receivers of a run: each gets all webhooks of its endpoint. They die, hang and refuse when the
// plan says so, and remember every request.
import { Webhook } from "standardwebhooks";
import {
  type Behaviour,
  type Received,
  type Receiver,
  startReceiver,
} from "../receiver/receiver.ts";
import type { Receipt } from "./invariants/order_invariants.ts";

/**
 * What each wants; a receiver of plain orders has no endpoint. Strict order takes one send at a time, so
 * it is for few events.
 */
const endpointOf = {
  "receiver-1": { ordering: "key" },
  "receiver-2": { ordering: "endpoint", event_types: ["EntitlementRevoked", "PointsTaken"] },
  "receiver-3": { ordering: "none" },
  "receiver-4": undefined,
} as const;

export type ReceiverName = keyof typeof endpointOf;
export const receiverNames = Object.keys(endpointOf) as ReceiverName[];
/** Gets plain orders. */
export const plainReceiver: ReceiverName = "receiver-4";

export type ReceiverFault = "receiver-down" | "receiver-hang" | "receiver-refuse";

const whileIn: Record<Exclude<ReceiverFault, "receiver-down">, Behaviour> = {
  "receiver-hang": "hang",
  "receiver-refuse": 503,
};

export class Receivers implements AsyncDisposable {
  readonly received: Receipt[] = [];
  readonly #receivers: Map<string, Receiver>;
  readonly #secrets = new Map<string, string>();
  readonly #behaviour = new Map<string, Behaviour>();

  private constructor(receivers: Map<string, Receiver>) {
    this.#receivers = receivers;
    for (const name of receivers.keys()) {
      this.#of(name).behave((request) => this.#answer(name, request));
    }
  }

  static async start(): Promise<Receivers> {
    const started = receiverNames.map(async (name) => [name, await startReceiver()] as const);
    return new Receivers(new Map(await Promise.all(started)));
  }

  urlOf(name: ReceiverName): string {
    return `${this.#of(name).url}/${name}`;
  }

  /** Makes an endpoint for each receiver that has one, with the notification service at this url. */
  async register(notificationUrl: string): Promise<void> {
    for (const [name, wants] of Object.entries(endpointOf)) {
      if (!wants) continue;
      const response = await fetch(`${notificationUrl}/v1/endpoints`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ url: this.urlOf(name as ReceiverName), ...wants }),
      });
      const { secret, message } = await response.json();
      if (response.status !== 201) throw new Error(`${name} has no endpoint: ${message}`);
      this.#secrets.set(name, secret);
    }
  }

  async disturb(name: string, how: ReceiverFault, lasting: () => Promise<void>): Promise<void> {
    const receiver = this.#of(name);
    if (how === "receiver-down") await receiver.stop();
    else this.#behaviour.set(name, whileIn[how]);
    await lasting();
    this.#behaviour.delete(name);
    await receiver.stop(); // otherwise what hangs would hang on
    await receiver.start();
  }

  #answer(name: string, { headers, body, path, at }: Received): Behaviour {
    const behaviour = this.#behaviour.get(name) ?? 200;
    this.received.push({
      url: this.#of(name).url + path,
      send_id: headers.get("webhook-id") ?? headers.get("idempotency-key") ?? "",
      at,
      body,
      status: typeof behaviour === "number" ? behaviour : undefined,
      isSigned: this.#isSigned(name, headers, body),
    });
    return behaviour;
  }

  #isSigned(name: string, headers: Headers, body: string): boolean {
    const secret = this.#secrets.get(name);
    if (secret === undefined) return !headers.has("webhook-signature");
    try {
      new Webhook(secret).verify(body, Object.fromEntries(headers));
      return true;
    } catch {
      return false;
    }
  }

  #of(name: string): Receiver {
    const receiver = this.#receivers.get(name);
    if (!receiver) throw new Error(`There is no ${name}`);
    return receiver;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const receiver of this.#receivers.values()) await receiver.stop();
  }
}
