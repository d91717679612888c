// A request as a client makes it: for fetch, and as bytes for a load that writes to a socket itself.
export interface HttpRequest {
  path: string;
  init?: { method: string; headers: Record<string, string>; body?: string };
}

/** The request of any command. */
export function command(
  path: string,
  key: string,
  fields: unknown,
  headers: Record<string, string> = {},
): Required<HttpRequest> {
  return {
    path,
    init: {
      method: "POST",
      headers: { "Content-Type": "application/json", "Idempotency-Key": key, ...headers },
      body: JSON.stringify(fields),
    },
  };
}

const encoder = new TextEncoder();

export function toBytes(host: string, { path, init }: HttpRequest): Uint8Array {
  const { method = "GET", headers = {}, body = "" } = init ?? {};
  const bytes = encoder.encode(body);
  const length = init ? { "Content-Length": bytes.length } : {};
  const head = Object.entries({ Host: host, ...headers, ...length })
    .map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return encoder.encode(`${method} ${path} HTTP/1.1\r\n${head}\r\n${body}`);
}
