// Sessions of the gateway without a login at an issuer, sealed as the gateway seals them.
import { sessionBeginner } from "../../gateway/session/begin_session.ts";
import { type Cookies, cookiesOf } from "../../gateway/session/cookies.ts";
import { Seals } from "../../gateway/session/seal.ts";
import { SessionCookies } from "../../gateway/session/session.ts";
import type { Settings } from "../servers/service_process.ts";

export const sessionKey = "A".repeat(43);
const publicUrl = "http://localhost:8000";
const hour = 3_600_000;

export const provider = "https://issuer.example";
export const cookies: Cookies = cookiesOf(publicUrl);

/** What a gateway needs to start, without the services behind it; its issuer does not exist. */
export const gatewaySettings: Settings = {
  GATEWAY_PUBLIC_URL: publicUrl,
  GATEWAY_ISSUER: "http://localhost:9",
  GATEWAY_CLIENT_ID: "kenri",
  GATEWAY_SESSION_KEYS: sessionKey,
};

export interface ResolvedUser {
  user_id: string;
  account_status: string;
  roles: string[];
  session_epoch: number;
  is_new: boolean;
}

/** The value of the header Cookie. */
export async function sessionCookie(
  user: ResolvedUser,
  { key = sessionKey, ttlMs = hour, sid }: { key?: string; ttlMs?: number; sid?: string } = {},
): Promise<string> {
  const bytes = Uint8Array.fromBase64(key, { alphabet: "base64url" });
  const begin = sessionBeginner({
    cookies,
    sessions: new SessionCookies(new Seals([bytes]), { idleMs: hour }),
    options: { ttlMs },
  });
  const [cookie = ""] = (await begin(user, provider, sid)).split(";");
  return cookie;
}
