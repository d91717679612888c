import { isLoopback } from "@kenri/shared/access/loopback.ts";
import type { MiddlewareHandler } from "hono";

// This machine has several names, and a browser keeps the cookies of each apart: who begins a login at
// http://localhost comes back to http://127.0.0.1 without the cookie of the login. So a browser is sent
// to the public address first. Elsewhere there is one name only, and a proxy may replace it, so nobody
// is sent anywhere.
export function atOneName(publicUrl: string): MiddlewareHandler {
  const { hostname, port, protocol } = new URL(publicUrl);
  return async ({ req }, next) => {
    const asked = new URL(req.url);
    const isOtherName = protocol === "http:" && asked.port === port &&
      asked.hostname !== hostname && isLoopback(asked.hostname);
    if (!isOtherName || req.method !== "GET") return await next();
    const location = publicUrl + asked.pathname + asked.search;
    return new Response(null, { status: 302, headers: { Location: location } });
  };
}
