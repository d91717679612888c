// The load, in a process of its own: changes over HTTP on connections that are kept alive. It spends
// as little as it can, because it shares the machine with what it measures: requests are bytes
// before the clock starts, and of a response only the status and the length are read.
// Arguments: url, kind, and the rest as JSON. Prints one line of JSON.
import { fileURLToPath } from "node:url";

export type LoadKind = "change" | "replay" | "list";

export interface LoadOptions {
  first: number;
  count: number;
  users?: number; // that share the changes; absent: each is of a user of its own
}

export interface LoadResult {
  seconds: number;
  latenciesMs: { p50: number; p99: number; max: number };
}

const connections = 64;

export async function runLoad(
  url: string,
  kind: LoadKind,
  options: LoadOptions,
): Promise<LoadResult> {
  const { success, stdout } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--cached-only", `--allow-net=${new URL(url).host}`],
      ...[fileURLToPath(import.meta.url), url, kind, JSON.stringify(options)],
    ],
    stderr: "inherit",
  }).output();
  if (!success) throw new Error("The load could not be carried out");
  return JSON.parse(new TextDecoder().decode(stdout));
}

async function load(
  { hostname, port, host }: URL,
  kind: LoadKind,
  { first, count, users }: LoadOptions,
): Promise<LoadResult> {
  const requests = Array.from(
    { length: count },
    (_, i) =>
      kind === "list"
        ? listRequest(host, i % (users ?? count))
        : changeRequest(host, kind === "replay" ? i % 10_000 : first + i, users),
  );
  const sockets = await Promise.all(Array.from(
    { length: connections },
    () => Deno.connect({ hostname, port: Number(port) }),
  ));
  const latencies = new Float64Array(count);
  let next = 0;
  const send = async (socket: Deno.TcpConn) => {
    const buffer = new Uint8Array(4_096);
    while (next < count) {
      const index = next++;
      const from = performance.now();
      await writeAll(socket, requests[index] as Uint8Array);
      await readAnswer(socket, buffer);
      latencies[index] = performance.now() - from;
    }
    socket.close();
  };
  const from = performance.now();
  await Promise.all(sockets.map(send));
  const seconds = (performance.now() - from) / 1_000;
  latencies.sort();
  const at = (share: number) => latencies[Math.min(count - 1, Math.floor(count * share))] as number;
  return { seconds, latenciesMs: { p50: at(0.5), p99: at(0.99), max: at(1) } };
}

// Of so many users each has one entitlement after the other.
function changeRequest(host: string, number: number, users = number + 1): Uint8Array {
  const body = JSON.stringify({
    user_id: `user-${number % users}`,
    stock_keeping_unit: `premium-${Math.floor(number / users)}`,
    reason: "purchase",
    purchase_id: `purchase-${number}`,
  });
  return new TextEncoder().encode(
    `POST /v1/entitlements/grants HTTP/1.1\r\nHost: ${host}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n` +
      `Idempotency-Key: key-${number}\r\n\r\n${body}`,
  );
}

function listRequest(host: string, user: number): Uint8Array {
  return new TextEncoder().encode(
    `GET /v1/users/user-${user}/entitlements HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
  );
}

async function writeAll(socket: Deno.TcpConn, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length;) {
    written += await socket.write(bytes.subarray(written));
  }
}

const decoder = new TextDecoder("latin1");

async function readAnswer(socket: Deno.TcpConn, buffer: Uint8Array): Promise<void> {
  let size = 0;
  for (;;) {
    const read = await socket.read(buffer.subarray(size));
    if (!read) throw new Error("The service closed the connection");
    size += read;
    const text = decoder.decode(buffer.subarray(0, size));
    const end = text.indexOf("\r\n\r\n");
    if (end < 0) continue;
    const length = Number(/content-length: *(\d+)/i.exec(text)?.[1]);
    if (size < end + 4 + length) continue;
    if (!text.startsWith("HTTP/1.1 200 ")) throw new Error(`Not a change: ${text}`);
    return;
  }
}

if (import.meta.main) {
  const [url = "", kind, options = ""] = Deno.args;
  console.log(JSON.stringify(await load(new URL(url), kind as LoadKind, JSON.parse(options))));
}
