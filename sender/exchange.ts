import {
  keptOfBody,
  type SendAnswer,
  type SendFailure,
  type SendReason,
  type SendRequest,
} from "@kenri/proto/send.ts";
import { reasonOf } from "@kenri/shared/process/reason.ts";
import type { Buffer } from "node:buffer";
import http, { type ClientRequest, type IncomingMessage } from "node:http";
import net, { type Socket } from "node:net";
import tls from "node:tls";

// One request and its answer on a connection of its own to one address. A connection is never used
// again: the runtime would send a request a second time if a used one closed before the answer.

export interface Destination {
  address: string;
  port: number;
  host: string; // the name in the url, by which TLS verifies the receiver
  url: URL;
}

/** Nothing was sent. */
export interface NotConnected extends SendFailure {
  isConnected: false;
}

type Outcome = SendAnswer | SendFailure | NotConnected;

// What the headers of an answer may take.
const maxHeaderSize = 16 * 1024;

export function exchange(
  to: Destination,
  { method, headers, body }: SendRequest,
  limit: AbortSignal,
): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const { request, progress } = begin(to, method, headers);
  const end = (outcome: Outcome) => {
    resolve(outcome);
    request.destroy();
  };
  const endLate = () => end({ reason_code: "TIMEOUT", message: late[progress.reached] });
  if (limit.aborted) endLate();
  limit.addEventListener("abort", endLate, { once: true });
  request.on("error", (error) => end(failureOf(error, progress.reached)));
  request.on("upgrade", (_, socket) => {
    socket.destroy();
    end(broken("The receiver switched to another protocol"));
  });
  request.on("response", (response) => readAnswer(response, end));
  request.end(body);
  return promise;
}

/** What has been reached. */
type Phase = "nothing" | "address" | "receiver";

function begin(
  to: Destination,
  method: string,
  headers: Record<string, string>,
): { request: ClientRequest; progress: { reached: Phase } } {
  const { url } = to;
  const socket = connect(to);
  const progress: { reached: Phase } = { reached: "nothing" };
  socket.on("connect", () => progress.reached = url.protocol === "http:" ? "receiver" : "address");
  socket.on("secureConnect", () => progress.reached = "receiver");
  const request = http.request({
    method,
    path: url.href.slice(url.origin.length).replace(/#.*/, ""),
    headers: { "user-agent": "Kenri", ...headers, host: url.host },
    createConnection: () => socket,
    maxHeaderSize,
  });
  return { request, progress };
}

// node:https would need a permission to list the trusted authorities, which this does not.
function connect({ address, port, host, url }: Destination): Socket {
  if (url.protocol === "http:") return net.connect({ host: address, port });
  const servername = host === address ? {} : { servername: host };
  return tls.connect({ host: address, port, ...servername, ALPNProtocols: ["http/1.1"] });
}

const late: Record<Phase, string> = {
  nothing: "No connection in time",
  address: "TLS did not begin in time",
  receiver: "No complete answer in time",
};

// Only the beginning of the body is kept, so there is no reason to receive the rest.
function readAnswer(response: IncomingMessage, end: (outcome: Outcome) => void): void {
  const chunks: Buffer[] = [];
  let size = 0;
  const endWhole = () => end(answerOf(response, chunks));
  response.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= keptOfBody) endWhole();
  });
  response.on("end", endWhole);
  response.on("error", () => end(broken("The answer ended early or can't be read")));
}

function answerOf({ statusCode = 0, headers }: IncomingMessage, chunks: Buffer[]): SendAnswer {
  const decoder = new TextDecoder();
  let left = keptOfBody;
  let body = "";
  for (const chunk of chunks) {
    body += decoder.decode(chunk.subarray(0, left), { stream: true });
    left -= Math.min(left, chunk.length);
  }
  const texts = Object.entries(headers).map(([name, value]) => [name, String(value)]);
  return { status: statusCode, headers: Object.fromEntries(texts), body };
}

function failureOf(error: Error, reached: Phase): SendFailure | NotConnected {
  const failure = { reason_code: reasonCodeOf(error, reached), message: reasonOf(error) };
  return reached === "nothing" ? { ...failure, isConnected: false } : failure;
}

function reasonCodeOf(error: Error, reached: Phase): SendReason {
  // The permissions of the process forbid the address.
  if (error.name === "NotCapable" && error.message.includes("net access")) return "ADDRESS_BLOCKED";
  return reached === "address" ? "TLS_FAILED" : "CONNECTION_FAILED";
}

function broken(message: string): SendFailure {
  return { reason_code: "CONNECTION_FAILED", message };
}
