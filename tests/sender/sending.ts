// Requests through the sender: by its functions in this process, which may do everything, or through a
// process of its own with the permissions that it gets everywhere.
import type { SendAnswer, SendFailure, SendRequest } from "../../proto/send.ts";
import { type Range, readRange } from "../../shared/net/public_addresses.ts";
import { send, type SendOptions } from "../../sender/send.ts";
import { resolve } from "../../sender/resolve.ts";
import {
  type ServiceProcess,
  type Settings,
  startService,
} from "../../tools/servers/service_process.ts";

export type Outcome = SendAnswer | SendFailure;

export const rangesOf = (...written: string[]): Range[] =>
  written.flatMap((range) => readRange(range) ?? []);

export function requestTo(url: string, more: Partial<SendRequest> = {}): SendRequest {
  const headers = { "Content-Type": "application/json", "webhook-id": "an id" };
  return { method: "POST", url, headers, body: '{"a":"é"}', timeout_ms: 5_000, ...more };
}

/** As with the settings for an intranet: this machine is allowed. */
export const inside: SendOptions = {
  rules: { plainHttp: true, ports: [443, 8443], allowed: rangesOf("127.0.0.0/8") },
  own: { hostname: "127.0.0.1", port: 8084 },
  resolve,
};

/** As with the settings that nobody has changed. */
export const outside: SendOptions = {
  ...inside,
  rules: { plainHttp: false, ports: [443, 8443], allowed: [] },
};

/** Fails if the time limit of the request did not end it. */
export async function sendInside(
  url: string,
  more?: Partial<SendRequest>,
  options?: Partial<SendOptions>,
): Promise<Outcome> {
  const request = requestTo(url, more);
  const late = Promise.withResolvers<never>();
  const error = new Error(`no outcome within ${request.timeout_ms} ms`);
  const timer = setTimeout(() => late.reject(error), request.timeout_ms + 5_000);
  try {
    return await Promise.race([send(request, { ...inside, ...options }), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

export function codeOf(outcome: Outcome): string {
  return "reason_code" in outcome ? outcome.reason_code : `${outcome.status}`;
}

export const token = "the-token-of-the-sender-in-its-tests";

export function startSender(settings: Settings = {}): Promise<ServiceProcess> {
  return startService("sender", { SENDER_TOKEN: token, ...settings });
}

export const forTests: Settings = {
  SENDER_ALLOW_ADDRESSES: "127.0.0.0/8",
  SENDER_PLAIN_HTTP: "true",
};

export async function ask(
  { url }: { url: string },
  fields: unknown,
  { path = "/send", credential = token } = {},
  // deno-lint-ignore no-explicit-any
): Promise<{ status: number; json: any }> {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "Authorization": `Bearer ${credential}`, "Content-Type": "application/json" },
    body: JSON.stringify(fields),
  });
  return { status: response.status, json: await response.json() };
}
