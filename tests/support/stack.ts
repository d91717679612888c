// One replica of both services on databases and a stream of their own, with the operators' API enabled.
import { call } from "./api.ts";
import { type Entitlement, startEntitlement } from "./entitlement.ts";
import type { FreshPlace } from "./places.ts";
import { freshPlace, startNotification } from "./notification.ts";
import type { ServiceProcess, Settings } from "../../tools/servers/service_process.ts";
import { deleteStream, natsUrl } from "./streams.ts";

export interface Stack extends AsyncDisposable {
  entitlement: Entitlement;
  notification: ServiceProcess;
  place: FreshPlace; // of the notification service
}

export async function startStack(
  { entitlement: moreOfEntitlement = {}, notification: moreOfNotification = {} }: {
    entitlement?: Settings;
    notification?: Settings;
  } = {},
): Promise<Stack> {
  const entitlement = await startEntitlement({
    ENTITLEMENT_DEBUG_ENABLED: "true",
    ENTITLEMENT_OUTBOX_POLL_INTERVAL: "100ms",
    ...moreOfEntitlement,
  });
  const { stream, subject } = entitlement;
  const place = await freshPlace({ stream, subject });
  const notification = await startNotification(place, {
    NOTIFICATION_DEBUG_ENABLED: "true",
    ...moreOfNotification,
  });
  return {
    entitlement,
    notification,
    place,
    async [Symbol.asyncDispose]() {
      await notification.kill();
      await entitlement.close();
      await place[Symbol.asyncDispose]();
      await deleteStream(natsUrl, stream);
    },
  };
}

/** With these settings every send to a user whose name begins with "unlucky" fails. */
export const failingSends: Settings = {
  NOTIFICATION_DELIVERY_FAILURE_INJECTION_ENABLED: "true",
  NOTIFICATION_DELIVERY_FAILURE_INJECTION_USER_ID_PREFIX: "unlucky",
  NOTIFICATION_DELIVERY_MAX_ATTEMPTS: "2",
  NOTIFICATION_DELIVERY_BACKOFF_BASE: "10ms",
  NOTIFICATION_DELIVERY_BACKOFF_MIN: "10ms",
};

// deno-lint-ignore no-explicit-any
export async function look(url: string, path: string, headers = {}): Promise<any> {
  const { status, json, text } = await call(`${url}${path}`, { headers });
  if (status !== 200) throw new Error(`${path} answers ${status}: ${text}`);
  return json;
}

/** A POST of an operator, with the name and the reason that it needs. */
export async function operate(
  url: string,
  path: string,
  body: Record<string, unknown>,
  headers: Record<string, string> = {},
  // deno-lint-ignore no-explicit-any
): Promise<any> {
  const { status, json, text } = await call(`${url}${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify({ who: "kim", reason: "the channel is back", ...body }),
  });
  if (status !== 200) throw new Error(`${path} answers ${status}: ${text}`);
  return json;
}
