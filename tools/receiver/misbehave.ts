// What a slow, broken or hostile receiver does with a connection once it has read a request.
import { once } from "node:events";
import type { Socket } from "node:net";

export type Misbehaviour =
  | "hang" // reads the request and never answers
  | "hang after head" // promises a body and sends none of it
  | "close" // closes without an answer
  | "close in head" // sends half of the head
  | "close in body" // sends half of the promised body
  | "reset" // instead of an answer
  | "reset in body"
  | "endless head" // header lines without end
  | "endless body" // as fast as the client reads
  | "slow body" // endless, one byte each 50 ms
  | "huge body" // 64 MiB with their length
  | "wrong length" // Content-Length is no number
  | "broken head"; // not HTTP

const kibibyte = "x".repeat(1_024);

export const misbehave: Record<Misbehaviour, (socket: Socket) => unknown> = {
  "hang": (socket) => once(socket, "close"),
  "hang after head": (socket) => {
    socket.write(headOf(200, { "Content-Length": "10" }));
    return once(socket, "close");
  },
  "close": (socket) => socket.end(),
  "close in head": (socket) => socket.end("HTTP/1.1 200 Answer\r\nContent-Le"),
  "close in body": (socket) => socket.end(headOf(200, { "Content-Length": "10" }) + "12345"),
  "reset": (socket) => socket.resetAndDestroy(),
  "reset in body": (socket) =>
    socket.write(
      headOf(200, { "Content-Length": "10" }) + "12345",
      () => socket.resetAndDestroy(),
    ),
  "endless head": (socket) =>
    pour(socket, "HTTP/1.1 200 Answer\r\n", (at) => `X-Line-${at}: ${kibibyte}\r\n`),
  "endless body": (socket) =>
    pour(
      socket,
      headOf(200, { "Transfer-Encoding": "chunked" }),
      () => `10000\r\n${kibibyte.repeat(64)}\r\n`,
    ),
  "slow body": (socket) =>
    pour(socket, headOf(200, { "Transfer-Encoding": "chunked" }), () => "1\r\nx\r\n", 50),
  "huge body": (socket) =>
    pour(
      socket,
      headOf(200, { "Content-Length": `${64 * 1_048_576}` }),
      (at) => at < 1_024 ? kibibyte.repeat(64) : undefined,
    ),
  "wrong length": (socket) => socket.end(headOf(200, { "Content-Length": "many" }) + "12345"),
  "broken head": (socket) => socket.end("This is not HTTP\r\n\r\n"),
};

export const headOf = (status: number, headers: Record<string, string>): string =>
  [`HTTP/1.1 ${status} Answer`, ...Object.entries(headers).map((line) => line.join(": ")), "\r\n"]
    .join("\r\n");

// Writes part after part, no faster than the other side reads them, until it closes.
async function pour(
  socket: Socket,
  head: string,
  partAt: (at: number) => string | undefined,
  everyMs = 0,
): Promise<void> {
  let isFree = socket.write(head);
  for (let at = 0; !socket.destroyed; at++) {
    const part = partAt(at);
    if (part === undefined) return;
    if (everyMs > 0) await pause(socket, everyMs);
    if (!isFree) await drained(socket);
    isFree = socket.destroyed || socket.write(part);
  }
}

const drained = (socket: Socket): Promise<void> =>
  untilClosed(socket, (done) => {
    socket.on("drain", done);
    return () => socket.off("drain", done);
  });

export const pause = (socket: Socket, ms: number): Promise<void> =>
  untilClosed(socket, (done) => {
    const timer = setTimeout(done, ms);
    return () => clearTimeout(timer);
  });

// Waits for something, or for the end of the connection.
function untilClosed(socket: Socket, wait: (done: () => void) => () => void): Promise<void> {
  if (socket.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      stopWaiting();
      socket.off("close", done);
      resolve();
    };
    const stopWaiting = wait(done);
    socket.on("close", done);
  });
}
