import { slotOf } from "@kenri/shared/access/admit.ts";
import type { Context } from "hono";

// The address of the client. Each trusted proxy appends the address from which it got the request to
// X-Forwarded-For; entries before those were written by nobody we trust.
export function addressOf(context: Context, trustedProxies: number): string {
  const peer = slotOf(context)?.peer ?? "";
  if (trustedProxies === 0) return peer;
  const entries = (context.req.raw.headers.get("X-Forwarded-For") ?? "")
    .split(",").map((entry) => entry.trim()).filter((entry) => entry !== "");
  return withoutPort(entries.at(-trustedProxies) ?? entries[0] ?? peer);
}

// Some proxies also write the port, which is another one for each connection.
function withoutPort(entry: string): string {
  const [, inBrackets, ipv4] = /^(?:\[(.+)\](?::\d+)?|([\d.]+):\d+)$/.exec(entry) ?? [];
  return inBrackets ?? ipv4 ?? entry;
}
