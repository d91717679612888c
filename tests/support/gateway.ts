// Replicas of the gateway in front of an account service, and sessions without a login at an issuer.
import {
  type ServiceProcess,
  type Settings,
  startService,
} from "../../tools/servers/service_process.ts";
import {
  cookies,
  gatewaySettings,
  provider,
  sessionCookie,
  sessionKey,
} from "../../tools/load/sessions.ts";
import { until } from "../../tools/servers/wait.ts";
import { type Account, resolve } from "./account.ts";
import { type Answer, call } from "./api.ts";
import { scrapeOf, valueOf } from "./metrics.ts";

export { cookies, sessionKey };

/** One replica. Tests that log in name an issuer in `more`. */
export function startGateway(account: Account, more: Settings = {}): Promise<ServiceProcess> {
  const { stream, subject, settings } = account;
  return startService("gateway", {
    ...gatewaySettings,
    GATEWAY_ACCOUNT_URL: account.url,
    GATEWAY_NATS_STREAM: stream,
    GATEWAY_NATS_SUBJECT: subject,
    NATS_URL: settings["NATS_URL"] ?? "",
    ...more,
  });
}

export function untilConnected({ log }: ServiceProcess): Promise<void> {
  const connected = () => log.some(({ message }) => message.startsWith("Connected to NATS"));
  return until("the gateway is connected to NATS", connected);
}

export interface LoggedIn {
  userId: string;
  subject: string; // at the issuer
  cookie: string; // the header Cookie
  as(headers?: Record<string, string>): Record<string, string>;
}

/** A user with a session that is sealed as the gateway seals it. */
export async function logIn(
  account: Account,
  { subject = crypto.randomUUID(), ...session }: {
    subject?: string;
    key?: string;
    ttlMs?: number;
    sid?: string;
  } = {},
): Promise<LoggedIn> {
  const user = await resolve(account, { provider, subject, name: subject });
  const cookie = await sessionCookie(user, session);
  return {
    userId: user.user_id,
    subject,
    cookie,
    as: (headers = {}) => ({ Cookie: cookie, ...headers }),
  };
}

/** The answer of /v1/me, whose csrf_token unsafe requests need. */
export function me({ url }: { url: string }, { cookie }: { cookie: string }): Promise<Answer> {
  return call(`${url}/v1/me`, { headers: { Cookie: cookie } });
}

/** The headers that prove to the gateway that a request is not made by another site. */
export async function csrf(
  gateway: { url: string },
  visitor: { cookie: string },
): Promise<{ "X-CSRF-Token": string; "Sec-Fetch-Site": string }> {
  const { json } = await me(gateway, visitor);
  return { "X-CSRF-Token": json.csrf_token, "Sec-Fetch-Site": "same-origin" };
}

export function logOut(
  { url }: { url: string },
  { cookie }: { cookie: string },
  headers: Record<string, string>,
  query = "",
): Promise<Answer> {
  return call(`${url}/logout${query}`, { method: "POST", headers: { Cookie: cookie, ...headers } });
}

/** It lets the person in by what it knows, without a question to the account service. */
export async function untilItKnows(
  gateway: { url: string },
  person: { cookie: string },
): Promise<void> {
  const count = async () =>
    valueOf(await scrapeOf(gateway), "gateway_session_checks_total", { by: "known" }) ?? 0;
  await until("a gateway knows the user", async () => {
    const before = await count();
    await me(gateway, person);
    return await count() > before;
  });
}
