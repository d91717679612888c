import type { MiddlewareHandler } from "hono";
import { cookieOf } from "./begin_session.ts";
import type { Cookies } from "./cookies.ts";
import type { SessionCookies } from "./session.ts";

// A session in use gets a new cookie now and then, so that it does not end as idle. The old cookie stays
// valid, so requests at the same time don't disturb each other. An answer that sets a cookie itself is
// left alone: it ends the session, or begins another.
export function renewCookie(
  { cookies, sessions }: { cookies: Cookies; sessions: SessionCookies },
): MiddlewareHandler {
  return async (context, next) => {
    await next();
    const { session } = context.get("session") ?? {};
    if (!session || !sessions.isToRenew(session)) return;
    if (context.res.headers.has("Set-Cookie")) return;
    const renewed = { ...session, issuedAtMs: Date.now() };
    context.res.headers.append("Set-Cookie", await cookieOf(renewed, cookies, sessions));
  };
}
