import { Buffer } from "node:buffer";
import { reasonOf } from "../process/reason.ts";

// Requests to one server over connections that are kept. Each request is written at most once: when
// a kept connection closes before the answer, fetch and node:http write the request again, and the
// server would carry it out twice. This also takes half of the processor time that fetch takes.

export interface Answer {
  status: number;
  head: string;
  body: string;
}

interface Kept {
  connection: Deno.Conn;
  idleSince: number; // by performance.now()
}

// Shorter than servers keep idle connections.
const maxIdleMs = 4_000;
const firstBuffer = 8 * 1024;
const usualAnswer = 256 * 1024; // of 4 KiB of any body, and of many headers

export interface PlainRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: string | undefined;
}

export interface Limits {
  withinMs: number;
  end?: AbortSignal | undefined; // ends the request earlier
  isFresh?: boolean; // on a connection of its own, which is not kept
}

// There is no connection, so the server knows nothing of the request.
export class NotConnected extends Error {
  override readonly name = "NotConnected";
}

export class KeptConnections {
  readonly #url: URL;
  readonly #largestAnswer: number;
  readonly #idle: Kept[] = []; // the one that was used last is at the end

  constructor(url: string, largestAnswer = usualAnswer) {
    this.#url = new URL(url);
    this.#largestAnswer = largestAnswer;
  }

  // Rejects if there is no complete answer in time.
  async ask(request: PlainRequest, { withinMs, end, isFresh = false }: Limits): Promise<Answer> {
    const stop = new AbortController();
    const abort = () => stop.abort();
    const timer = setTimeout(abort, withinMs);
    if (end?.aborted) abort();
    end?.addEventListener("abort", abort);
    try {
      return await this.#exchange(this.#bytesOf(request, isFresh), stop.signal, isFresh);
    } catch (error) {
      this.close(); // the server may have ended, and then all connections are dead
      if (!stop.signal.aborted) throw error;
      throw new DOMException(`no answer within ${withinMs} ms`, "TimeoutError");
    } finally {
      clearTimeout(timer);
      end?.removeEventListener("abort", abort);
    }
  }

  close(): void {
    for (const { connection } of this.#idle.splice(0)) connection.close();
  }

  async #exchange(request: Uint8Array, end: AbortSignal, isFresh: boolean): Promise<Answer> {
    const connection = (isFresh ? undefined : this.#takeIdle()) ?? await this.#connect(end);
    const stop = () => connection.close();
    end.addEventListener("abort", stop);
    if (end.aborted) stop();
    let isReusable = false;
    try {
      for (let sent = 0; sent < request.length;) {
        sent += await connection.write(request.subarray(sent));
      }
      const { isWhole, ...answer } = await readAnswer(connection, this.#largestAnswer);
      isReusable = isWhole && !isFresh && !/^connection: *close/im.test(answer.head);
      return answer;
    } finally {
      end.removeEventListener("abort", stop);
      if (isReusable) this.#idle.push({ connection, idleSince: performance.now() });
      else if (!end.aborted) connection.close();
    }
  }

  #takeIdle(): Deno.Conn | undefined {
    const oldest = performance.now() - maxIdleMs;
    while (this.#idle[0] && this.#idle[0].idleSince < oldest) {
      this.#idle.shift()?.connection.close();
    }
    return this.#idle.pop()?.connection;
  }

  async #connect(signal: AbortSignal): Promise<Deno.Conn> {
    const { protocol, port } = this.#url;
    const hostname = this.#url.hostname.replaceAll(/^\[|\]$/g, "");
    const isEncrypted = protocol === "https:";
    const to = { hostname, port: Number(port) || (isEncrypted ? 443 : 80) };
    const connection = await Deno.connect({ ...to, signal }).catch((cause) => {
      throw new NotConnected(reasonOf(cause), { cause });
    });
    connection.setNoDelay();
    return isEncrypted ? await Deno.startTls(connection, { hostname }) : connection;
  }

  #bytesOf({ method, path, headers, body = "" }: PlainRequest, isFresh: boolean): Uint8Array {
    const bytes = encoder.encode(body);
    const lines = Object.entries({
      Host: this.#url.host,
      ...(isFresh ? { Connection: "close" } : {}),
      "Content-Length": bytes.length,
      ...headers,
    }).map(([name, value]) => `${name}: ${value}`);
    const first = `${method} ${path} HTTP/1.1`;
    for (const line of [first, ...lines]) requireOneLine(line);
    const head = encoder.encode(`${[first, ...lines].join("\r\n")}\r\n\r\n`);
    const request = new Uint8Array(head.length + bytes.length);
    request.set(head);
    request.set(bytes, head.length);
    return request;
  }
}

const encoder = new TextEncoder();

function requireOneLine(line: string): void {
  // deno-lint-ignore no-control-regex
  if (/[\r\n\u0000]/.test(line)) throw new TypeError("a header or a path has a line break");
}

// `isWhole` says that nothing came after the answer.
async function readAnswer(
  connection: Deno.Conn,
  largest: number,
): Promise<Answer & { isWhole: boolean }> {
  const incoming = new Incoming(connection, largest);
  const head = await incoming.upTo("\r\n\r\n");
  const status = Number(/^HTTP\/1\.1 (\d{3})\b/.exec(head)?.[1]);
  if (Number.isNaN(status)) throw new Error("the answer is not HTTP/1.1");
  const body = await bodyOf(head, status, incoming);
  return { status, head, body: body.toString(), isWhole: incoming.isRead };
}

async function bodyOf(head: string, status: number, incoming: Incoming): Promise<Buffer> {
  if (status === 204 || status === 304) return Buffer.alloc(0);
  if (/^transfer-encoding: *chunked *$/im.test(head)) return await readChunks(incoming);
  const length = /^content-length: *(\d{1,9}) *$/im.exec(head)?.[1];
  if (length === undefined) throw new Error("the answer does not state its length");
  return await incoming.take(Number(length));
}

// Our own services state the length of an answer, but a proxy on the way may send it in chunks.
async function readChunks(incoming: Incoming): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for (;;) {
    const size = /^([0-9a-f]{1,7}) *(;|$)/i.exec(await incoming.upTo("\r\n"))?.[1];
    if (size === undefined) throw new Error("the answer has a broken chunk");
    const length = parseInt(size, 16);
    if (length === 0) break;
    chunks.push(await incoming.take(length));
    if (await incoming.upTo("\r\n") !== "") throw new Error("the answer has a broken chunk");
  }
  while (await incoming.upTo("\r\n") !== "");
  return Buffer.concat(chunks);
}

// What arrives on a connection.
class Incoming {
  readonly #connection: Deno.Conn;
  readonly #largest: number;
  #buffer = Buffer.alloc(firstBuffer);
  #size = 0;
  #taken = 0;

  constructor(connection: Deno.Conn, largest: number) {
    this.#connection = connection;
    this.#largest = largest;
  }

  get isRead(): boolean {
    return this.#taken === this.#size;
  }

  async upTo(end: string): Promise<string> {
    for (;;) {
      const arrived = this.#buffer.subarray(this.#taken, this.#size);
      const at = arrived.indexOf(end);
      if (at >= 0) {
        this.#taken += at + end.length;
        return arrived.toString("latin1", 0, at); // one character for each byte
      }
      await this.#readMore();
    }
  }

  async take(length: number): Promise<Buffer> {
    while (this.#size < this.#taken + length) await this.#readMore();
    return this.#buffer.subarray(this.#taken, this.#taken += length);
  }

  async #readMore(): Promise<void> {
    if (this.#size === this.#buffer.length) this.#grow();
    const read = await this.#connection.read(this.#buffer.subarray(this.#size));
    if (read === null) throw new Error("the connection closed before the answer was complete");
    this.#size += read;
  }

  #grow(): void {
    if (this.#buffer.length >= this.#largest) throw new Error("the answer is too large");
    const larger = Buffer.alloc(2 * this.#buffer.length);
    larger.set(this.#buffer);
    this.#buffer = larger;
  }
}
