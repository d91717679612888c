// HTTP over a plain connection, for requests that fetch refuses to send.
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";

export interface RawAnswer {
  status: number;
  headers: Headers;
  text: string;
}

export interface RawConnection extends Disposable {
  send(data: string | Uint8Array): Promise<void>;
  // Closes the sending direction.
  end(): Promise<void>;
  // The next answer, or undefined if the server closes the connection instead.
  answer(): Promise<RawAnswer | undefined>;
}

export async function connectTo(url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const connection = await Deno.connect({ hostname, port: Number(port) });
  let received = ""; // one character per byte

  // Every answer of the service has a Content-Length.
  function nextAnswer(): RawAnswer | undefined {
    const [head, rest] = split(received, "\r\n\r\n");
    if (rest === undefined) return undefined;
    const [statusLine, ...lines] = head.split("\r\n");
    const headers = new Headers(lines.map((line) => split(line, ": ") as [string, string]));
    const length = Number(headers.get("Content-Length") ?? 0);
    if (rest.length < length) return undefined;
    received = rest.slice(length);
    const text = Buffer.from(rest.slice(0, length), "latin1").toString();
    return { status: Number(statusLine?.split(" ")[1]), headers, text };
  }

  return {
    send: async (data) => {
      let bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
      try {
        while (bytes.length > 0) bytes = bytes.subarray(await connection.write(bytes));
      } catch { /* The server may close before it has read everything. */ }
    },
    end: () => connection.closeWrite().catch(() => {}),
    answer: async () => {
      const buffer = new Uint8Array(16_384);
      for (;;) {
        const answer = nextAnswer();
        if (answer) return answer;
        const count = await connection.read(buffer).catch(() => null);
        if (count === null) return undefined;
        received += Buffer.from(buffer.subarray(0, count)).toString("latin1");
      }
    },
    [Symbol.dispose]: () => connection.close(),
  };
}

/** Connects clients one after the other, and leaves out those that the server does not accept. */
export async function connectMany(
  url: string,
  count: number,
): Promise<RawConnection[] & Disposable> {
  const clients: RawConnection[] = [];
  for (let i = 0; i < count; i++) {
    const client = await connectTo(url).catch(() => undefined);
    if (client) clients.push(client);
  }
  return together(clients);
}

export function together<Client extends Disposable>(clients: Client[]): Client[] & Disposable {
  const dispose = () => {
    for (const client of clients) client[Symbol.dispose]();
  };
  return Object.assign(clients, { [Symbol.dispose]: dispose });
}

function split(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + separator.length)];
}

// Sends the parts on a new connection and returns the first answer.
export async function sendRaw(
  url: string,
  ...parts: (string | Uint8Array)[]
): Promise<RawAnswer | undefined> {
  using connection = await connectTo(url);
  for (const part of parts) await connection.send(part);
  return await connection.answer();
}

// The head of a request for a change, with more header lines.
export function changeHead(...lines: string[]): string {
  return [
    "POST /v1/entitlements/grants HTTP/1.1",
    "Host: localhost",
    "Content-Type: application/json",
    ...lines,
    "\r\n",
  ].join("\r\n");
}

export const contentLength = (body: string): string =>
  `Content-Length: ${new TextEncoder().encode(body).length}`;

/** Checks the form of an error, its status and its code. */
export function assertRawError(answer: RawAnswer | undefined, status: number, code: string): void {
  assert.ok(answer, "closed without an answer");
  assert.equal(answer.status, status, answer.text);
  const body = JSON.parse(answer.text);
  assert.deepEqual(Object.keys(body), ["code", "message"]);
  assert.equal(body.code, code);
}
