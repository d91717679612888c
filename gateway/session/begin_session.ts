import { createHash } from "node:crypto";
import type { Resolved } from "../account_client.ts";
import type { SessionOptions } from "../config.ts";
import type { Cookies } from "./cookies.ts";
import type { Session, SessionCookies } from "./session.ts";

export interface BeginParts {
  cookies: Cookies;
  sessions: SessionCookies;
  options: Pick<SessionOptions, "ttlMs">;
}

// `sid` is the session at the issuer, if the issuer names it.
export type BeginSession = (
  user: Pick<Resolved, "user_id" | "session_epoch">,
  provider: string,
  sid: string | undefined,
) => Promise<string>;

// Returns the header Set-Cookie. Every login begins a new session.
export function sessionBeginner(
  { cookies, sessions, options }: BeginParts,
): BeginSession {
  return async (user, provider, sid) => {
    const { user_id, session_epoch } = user;
    const now = Date.now();
    const session: Session = {
      sessionId: crypto.randomUUID(),
      userId: user_id,
      provider,
      epoch: session_epoch,
      issuedAtMs: now,
      expiresAtMs: now + options.ttlMs,
      issuerSession: sid === undefined ? undefined : issuerSessionOf(provider, sid),
    };
    return await cookieOf(session, cookies, sessions);
  };
}

export async function cookieOf(
  session: Session,
  cookies: Cookies,
  sessions: SessionCookies,
): Promise<string> {
  const sealed = await sessions.seal(session);
  return cookies.set(cookies.session, sealed, sessions.endOf(session) - Date.now());
}

// A UUID that stands for the session at the issuer, so that the issuer can end it by its name for it.
export function issuerSessionOf(provider: string, sid: string): string {
  const hex = createHash("sha256").update(JSON.stringify([provider, sid])).digest("hex");
  const variant = (8 + (parseInt(hex.charAt(16), 16) & 3)).toString(16);
  return [
    ...[hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`],
    ...[`${variant}${hex.slice(17, 20)}`, hex.slice(20, 32)],
  ].join("-");
}
