// Replicas of the gateway in front of an account service, and sessions without a login at an issuer.
import { KnownAccounts } from "../../gateway/session/known_accounts.ts";
import { sessionBeginner } from "../../gateway/session/begin_session.ts";
import { type Cookies, cookiesOf } from "../../gateway/session/cookies.ts";
import { Seals } from "../../gateway/session/seal.ts";
import { SessionCookies } from "../../gateway/session/session.ts";
import {
  type ServiceProcess,
  type Settings,
  startService,
} from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { type Account, resolve } from "./account.ts";
import { type Answer, call } from "./api.ts";

export const sessionKey = "A".repeat(43);
const publicUrl = "http://localhost:8000";
const hour = 3_600_000;

export const cookies: Cookies = cookiesOf(publicUrl);

/** One replica. Tests that log in name an issuer in `more`. */
export function startGateway(account: Account, more: Settings = {}): Promise<ServiceProcess> {
  const { stream, subject, settings } = account;
  return startService("gateway", {
    GATEWAY_PUBLIC_URL: publicUrl,
    GATEWAY_ISSUER: "http://localhost:9",
    GATEWAY_CLIENT_ID: "kenri",
    GATEWAY_SESSION_KEYS: sessionKey,
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
  cookie: string; // the header Cookie
  as(headers?: Record<string, string>): Record<string, string>;
}

/** A user with a session that is sealed as the gateway seals it. */
export async function logIn(
  account: Account,
  { subject = crypto.randomUUID(), key = sessionKey, ttlMs = hour, sid }: {
    subject?: string;
    key?: string;
    ttlMs?: number;
    sid?: string;
  } = {},
): Promise<LoggedIn> {
  const provider = "https://issuer.example";
  const user = await resolve(account, { provider, subject, name: subject });
  const bytes = Uint8Array.fromBase64(key, { alphabet: "base64url" });
  const begin = sessionBeginner({
    cookies,
    sessions: new SessionCookies(new Seals([bytes]), { idleMs: hour }),
    known: new KnownAccounts({ ttlMs }),
    options: { ttlMs },
  });
  const [cookie = ""] = (await begin({ ...user, version: 1 }, provider, sid)).split(";");
  return {
    userId: user.user_id,
    cookie,
    as: (headers = {}) => ({ Cookie: cookie, ...headers }),
  };
}

/** The answer of /v1/me, whose csrf_token unsafe requests need. */
export function me({ url }: { url: string }, { cookie }: { cookie: string }): Promise<Answer> {
  return call(`${url}/v1/me`, { headers: { Cookie: cookie } });
}

/** The header that proves to the gateway that a request is not made by another site. */
export async function csrf(
  gateway: { url: string },
  visitor: { cookie: string },
): Promise<{ "X-CSRF-Token": string }> {
  return { "X-CSRF-Token": (await me(gateway, visitor)).json.csrf_token };
}

export function logOut(
  { url }: { url: string },
  { cookie }: { cookie: string },
  headers: Record<string, string>,
  query = "",
): Promise<Answer> {
  return call(`${url}/logout${query}`, { method: "POST", headers: { Cookie: cookie, ...headers } });
}
