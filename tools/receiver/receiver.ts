// A receiver of webhooks that misbehaves on command: an HTTP server on plain sockets, so that it can also
// answer what no HTTP library would.
import { Buffer } from "node:buffer";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { until } from "../servers/wait.ts";
import { headOf, misbehave, type Misbehaviour, pause } from "./misbehave.ts";

export interface Received {
  method: string;
  path: string;
  headers: Headers;
  body: string;
  at: number; // Date.now() when the whole request was there
}

export interface Answer {
  status?: number; // 200
  headers?: Record<string, string>;
  body?: string;
  delayMs?: number; // before the first byte of the answer
}

/** `raw` is sent as it is, then the connection is closed. */
export type Behaviour = number | Answer | Misbehaviour | { raw: string };
export type Behaves = Behaviour | ((request: Received) => Behaviour | Promise<Behaviour>);

export interface Receiver extends AsyncDisposable {
  url: string; // without a slash at the end
  port: number;
  received: Received[]; // in the order in which they arrived whole
  connections: number; // that were ever accepted
  open: number; // that are open now
  /** From now on: one after the other, and then the last one for good. */
  behave(...behaviours: Behaves[]): void;
  /** The same for one path, which then no longer follows the others. */
  behaveAt(path: string, ...behaviours: Behaves[]): void;
  arrived(path: string): Received[];
  until(count: number, withinMs?: number): Promise<void>;
  /** Refuses connections and breaks those that are open, until `start`, which takes the same port. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

export interface ReceiverOptions {
  hostname?: string; // 127.0.0.1
  port?: number; // any
  tls?: { cert: string; key: string }; // as PEM
}

export async function startReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const { hostname = "127.0.0.1", tls } = options;
  const scripts = new Map<string, Behaves[]>();
  const sockets = new Set<Socket>();
  const accept = (socket: Socket) => {
    receiver.connections++;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    converse(socket, (request) => {
      receiver.received.push(request);
      return nextOf(scripts.get(request.path) ?? scripts.get("*"), request);
    });
  };
  const listen = async (port: number) => {
    const server = tls ? createTlsServer(tls, accept) : createServer(accept);
    server.on("tlsClientError", () => {}); // a client that does not trust the certificate
    server.listen(port, hostname);
    await once(server, "listening");
    return server;
  };
  let server: Awaited<ReturnType<typeof listen>> | undefined = await listen(options.port ?? 0);
  const { port } = server.address() as AddressInfo;
  const host = hostname.includes(":") ? `[${hostname}]` : hostname;
  const receiver: Receiver = {
    url: `${tls ? "https" : "http"}://${host}:${port}`,
    port,
    received: [],
    connections: 0,
    get open() {
      return sockets.size;
    },
    behave: (...behaviours) => void scripts.set("*", behaviours),
    behaveAt: (path, ...behaviours) => void scripts.set(path, behaviours),
    arrived: (path) => receiver.received.filter((request) => request.path === path),
    until: (count, withinMs) =>
      until(`${count} requests have arrived`, () => receiver.received.length >= count, withinMs),
    stop: async () => {
      const closed = server && once(server, "close");
      server?.close();
      server = undefined;
      for (const socket of sockets) socket.destroy();
      await closed;
    },
    start: async () => void (server ??= await listen(port)),
    [Symbol.asyncDispose]: () => receiver.stop(),
  };
  return receiver;
}

async function nextOf(script: Behaves[] | undefined, request: Received): Promise<Behaviour> {
  const next = script && script.length > 1 ? script.shift() : script?.[0];
  return typeof next === "function" ? await next(request) : next ?? 200;
}

// Answers the requests of a connection one after the other, as long as both sides keep it open.
function converse(socket: Socket, take: (request: Received) => Promise<Behaviour>): void {
  let received = ""; // one character per byte
  let isAnswering = false;
  const answerNext = async (): Promise<void> => {
    if (isAnswering) return;
    const [request, rest] = parse(received);
    if (!request) return;
    received = rest;
    isAnswering = true;
    await behave(socket, await take(request), request);
    isAnswering = false;
    if (!socket.destroyed) await answerNext();
  };
  socket.setNoDelay(true);
  socket.on("error", () => {}); // the sender may close whenever it has had enough
  socket.on("data", (data: Buffer) => {
    received += data.toString("latin1");
    answerNext().catch((error) => socket.destroy(error));
  });
}

function parse(received: string): [Received | undefined, string] {
  const end = received.indexOf("\r\n\r\n");
  if (end < 0) return [undefined, received];
  const [first = "", ...lines] = received.slice(0, end).split("\r\n");
  const [method = "", path = ""] = first.split(" ");
  const headers = new Headers(lines.map((line): [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  }));
  const rest = received.slice(end + 4);
  const [body, after] = headers.get("transfer-encoding") === "chunked"
    ? chunkedBody(rest)
    : bodyOf(rest, Number(headers.get("content-length") ?? 0));
  if (body === undefined) return [undefined, received];
  return [{ method, path, headers, body: utf8(body), at: Date.now() }, after];
}

function bodyOf(text: string, length: number): [string | undefined, string] {
  return text.length < length ? [undefined, text] : [text.slice(0, length), text.slice(length)];
}

function chunkedBody(text: string): [string | undefined, string] {
  let [body, rest] = ["", text];
  for (;;) {
    const line = rest.indexOf("\r\n");
    const length = parseInt(rest.slice(0, line), 16);
    if (line < 0 || rest.length < line + 2 + length + 2) return [undefined, text];
    body += rest.slice(line + 2, line + 2 + length);
    rest = rest.slice(line + 2 + length + 2);
    if (length === 0) return [body, rest];
  }
}

const utf8 = (latin1: string): string => Buffer.from(latin1, "latin1").toString();

async function behave(socket: Socket, behaviour: Behaviour, request: Received): Promise<void> {
  if (typeof behaviour === "string") return void await misbehave[behaviour](socket);
  if (typeof behaviour === "object" && "raw" in behaviour) return void socket.end(behaviour.raw);
  const answer = typeof behaviour === "number" ? { status: behaviour } : behaviour;
  const { status = 200, headers = {}, body = "", delayMs = 0 } = answer;
  if (delayMs > 0) await pause(socket, delayMs);
  const closes = request.headers.get("connection") === "close";
  socket.write(headOf(status, {
    "Content-Length": `${new TextEncoder().encode(body).length}`,
    ...(closes ? { Connection: "close" } : {}),
    ...headers,
  }));
  socket.write(body);
  if (closes) socket.end();
}
