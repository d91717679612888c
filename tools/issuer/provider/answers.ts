// What tests make go wrong with an answer before it leaves.
import type { ServerResponse } from "node:http";
import type { Endpoint, Fault } from "../faults.ts";

type Json = Record<string, unknown>;

const endpoints: Record<string, Endpoint> = {
  "/.well-known/openid-configuration": "discovery",
  "/auth": "authorize",
  "/token": "token",
  "/jwks": "keys",
  "/me": "userinfo",
};

export function endpointOf(path: string): Endpoint {
  return endpoints[path] ?? "other";
}

/** True if nothing else may answer. */
export async function withFault(fault: Fault, response: ServerResponse): Promise<boolean> {
  const { delayMs, instead, status, headers, body, json } = fault;
  if (delayMs !== undefined) await new Promise((done) => setTimeout(done, delayMs));
  if (instead === "hang") return true;
  if (instead === "close") response.destroy();
  else if (status !== undefined) response.writeHead(status, headers).end(body);
  else if (json) changeJson(response, (answer) => Promise.resolve({ ...answer, ...json }));
  return instead !== undefined || status !== undefined;
}

/** The JSON that is answered later, changed; members that are null are left out. */
export function changeJson(
  response: ServerResponse,
  change: (answer: Json) => Promise<Json>,
): void {
  const send = response.end.bind(response);
  const sendChanged = async (text: string) => {
    const answer = Object.entries(await change(JSON.parse(text)));
    const changed = JSON.stringify(
      Object.fromEntries(answer.filter(([, value]) => value !== null)),
    );
    response.removeHeader("Content-Length");
    send(changed);
  };
  // Koa passes the whole body.
  response.end = ((body: unknown) => {
    void sendChanged(String(body)).catch(() => response.destroy());
    return response;
  }) as typeof response.end;
}

export function sendPage(response: ServerResponse, page: string): void {
  response.writeHead(200, {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
  }).end(page);
}
