import { createHmac } from "node:crypto";
import { Buffer } from "node:buffer";
import { secretPrefix } from "./secrets.ts";

// The headers of a webhook, as Standard Webhooks 1.0 defines them. There is one signature for each
// secret, because during a rotation a receiver may know only the old one or only the new one.
export function signedHeaders(
  secrets: string[],
  id: string,
  timestampSeconds: number,
  body: string,
): Record<string, string> {
  const content = `${id}.${timestampSeconds}.${body}`;
  return {
    "webhook-id": id,
    "webhook-timestamp": `${timestampSeconds}`,
    "webhook-signature": secrets.map((secret) => `v1,${sign(secret, content)}`).join(" "),
  };
}

function sign(secret: string, content: string): string {
  const key = Buffer.from(secret.slice(secretPrefix.length), "base64");
  return createHmac("sha256", key).update(content).digest("base64");
}
