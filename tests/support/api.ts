// Calls the entitlement API as its callers do. `fields` may be anything, so that tests can send bad
// input; a string is sent as it is.
import assert from "node:assert/strict";
import type { EntitlementChange } from "../../client/answers.ts";
import { plantedKey } from "../../tools/planted.ts";
import { keep } from "../../tools/servers/evidence.ts";

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  // deno-lint-ignore no-explicit-any
  json: any; // undefined where the text is not JSON
}

export const someFields: EntitlementChange = {
  user_id: "ann",
  stock_keeping_unit: "book",
  reason: "purchase",
  purchase_id: "p-1",
};

export function post(
  url: string,
  action: "grants" | "revokes",
  fields: unknown,
  key: string | undefined,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return command(`${url}/v1/entitlements/${action}`, fields, key, headers);
}

export function command(
  url: string,
  fields: unknown,
  key: string | undefined,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return call(url, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      ...(key === undefined ? {} : { "Idempotency-Key": key }),
      ...headers,
    },
    body: typeof fields === "string" ? fields : JSON.stringify(fields),
  });
}

// Without a key, each call gets a new one.
export function grant(
  url: string,
  fields: Partial<EntitlementChange> = {},
  key: string = `${plantedKey}-${crypto.randomUUID()}`,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return post(url, "grants", { ...someFields, ...fields }, key, headers);
}

export function revoke(
  url: string,
  fields: Partial<EntitlementChange> = {},
  key: string = `${plantedKey}-${crypto.randomUUID()}`,
): Promise<Answer> {
  return post(url, "revokes", { ...someFields, ...fields }, key);
}

export function list(url: string, userId: string): Promise<Answer> {
  return call(`${url}/v1/users/${encodeURIComponent(userId)}/entitlements`);
}

export async function call(url: string, init?: RequestInit): Promise<Answer> {
  const response = await fetch(url, init);
  const text = await response.text();
  keep(kindOf(url, init?.method), text);
  return { status: response.status, headers: response.headers, text, json: parsed(text) };
}

/** Where the answer is kept: what is searched for secrets knows which answers may show one. */
function kindOf(url: string, method: string | undefined): string {
  if (url.includes("/debug/")) return "debug";
  const showsSecret = /\/v1\/endpoints(\/[^/]+\/rotate-secret)?(\?|$)/.test(url) &&
    method === "POST";
  return showsSecret ? "secrets" : "answers";
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// Every error has exactly these two members.
export function assertError(
  answer: Answer,
  status: number,
  code: string,
  message?: string,
): void {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.headers.get("Content-Type"), "application/json");
  assert.deepEqual(answer.json, { code, message: message ?? answer.json.message });
  assert.deepEqual(Object.keys(answer.json), ["code", "message"]);
}
