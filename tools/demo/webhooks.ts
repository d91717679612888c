// The shop's own receiver of webhooks: each event must also arrive here, with a valid signature.
import { Webhook } from "standardwebhooks";
import { type KenriError, notificationClient } from "../../client/client.ts";
import { startReceiver } from "../receiver/receiver.ts";
import type { Arrival } from "./inboxes.ts";

export interface Webhooks extends AsyncDisposable {
  verified: Set<string>; // ids of events
  problems: string[];
}

const description = "deno task demo";
const arriveWithinMs = 10_000;

/** Or why no webhooks can be sent here. */
export async function receiveWebhooks(
  url: string,
  headers: Record<string, string>,
): Promise<Webhooks | string> {
  const kenri = notificationClient(url, { headers, deadlineMs: 1_000 });
  const receiver = await startReceiver();
  try {
    const { endpoints } = await kenri.listEndpoints({ limit: 200 });
    for (const left of endpoints.filter((endpoint) => endpoint.description === description)) {
      await kenri.deleteEndpoint(left.endpoint_id); // of a demo that was killed
    }
    const made = await kenri.createEndpoint(crypto.randomUUID(), {
      url: receiver.url,
      description,
    });
    const webhooks: Webhooks = {
      verified: new Set(),
      problems: [],
      [Symbol.asyncDispose]: async () => {
        await kenri.deleteEndpoint(made.endpoint_id).catch(() => {});
        await receiver[Symbol.asyncDispose]();
      },
    };
    const webhook = new Webhook(made.secret ?? "");
    receiver.behave(({ headers, body }) => {
      receiver.received.length = 0; // what counts is kept below
      try {
        webhook.verify(body, Object.fromEntries(headers));
        webhooks.verified.add(headers.get("webhook-id") ?? "");
        return 204;
      } catch (error) {
        webhooks.problems.push(`A webhook is not valid: ${error}`);
        return 401;
      }
    });
    return webhooks;
  } catch (error) {
    await receiver[Symbol.asyncDispose]();
    return (error as KenriError).message;
  }
}

/** One sentence for each event that did not arrive as a webhook. */
export async function missingWebhooks(webhooks: Webhooks, arrivals: Arrival[]): Promise<string[]> {
  const missing = () => arrivals.filter(({ id }) => !webhooks.verified.has(id));
  const deadline = performance.now() + arriveWithinMs;
  while (missing().length > 0 && performance.now() < deadline) {
    await new Promise((over) => setTimeout(over, 100));
  }
  return missing().map(({ id }) => `No webhook arrived of the event ${id}`);
}
