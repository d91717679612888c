// Endpoints over HTTP, as callers register and change them.
import assert from "node:assert/strict";
import { type Answer, call, command } from "./api.ts";
import { createEndpoint, type Orders } from "./orders.ts";

type Fields = Record<string, unknown>;
type Headers = Record<string, string>;

export interface Made {
  endpoint_id: string;
  secret: string;
  url: string;
}

// Without a url, the receiver of the stage.
export async function make(
  stage: Pick<Orders, "url" | "receiver">,
  fields: Fields = {},
  headers: Headers = {},
): Promise<Made> {
  const url = `${stage.receiver.url}/hooks`;
  const { status, text, json } = await createEndpoint(stage, { url, ...fields }, headers);
  assert.equal(status, 201, text);
  return json;
}

const pathOf = (url: string, id: string, rest = "") =>
  `${url}/v1/endpoints/${encodeURIComponent(id)}${rest}`;

export function getEndpoint(
  { url }: { url: string },
  id: string,
  headers: Headers = {},
): Promise<Answer> {
  return call(pathOf(url, id), { headers });
}

export function listEndpoints(
  { url }: { url: string },
  query: Record<string, string> = {},
  headers: Headers = {},
): Promise<Answer> {
  return call(`${url}/v1/endpoints?${new URLSearchParams(query)}`, { headers });
}

export function change(
  { url }: { url: string },
  id: string,
  fields: Fields | string,
  headers: Headers = {},
): Promise<Answer> {
  return call(pathOf(url, id), {
    method: "PATCH",
    headers: { "Content-Type": "application/json", ...headers },
    body: typeof fields === "string" ? fields : JSON.stringify(fields),
  });
}

export function remove(
  { url }: { url: string },
  id: string,
  headers: Headers = {},
): Promise<Answer> {
  return call(pathOf(url, id), { method: "DELETE", headers });
}

export function act(
  { url }: { url: string },
  id: string,
  action: "pause" | "resume" | "test" | "rotate-secret" | "replay",
  fields: Fields = {},
  headers: Headers = {},
): Promise<Answer> {
  const key = headers["Idempotency-Key"];
  return command(pathOf(url, id, `/${action}`), fields, key, headers);
}

export function attemptsAt(
  { url }: { url: string },
  id: string,
  query: Record<string, string> = {},
  headers: Headers = {},
): Promise<Answer> {
  return call(pathOf(url, id, `/attempts?${new URLSearchParams(query)}`), { headers });
}
