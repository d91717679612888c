// The load, in a process of its own: changes over HTTP on connections that are kept alive. It spends
// as little as it can, because it shares the machine with what it measures: requests are bytes
// before the clock starts, and of a response only the status and the length are read.
// Arguments: url, connections, first change, number of changes. Prints one line of JSON.

export interface LoadResult {
  seconds: number;
  latenciesMs: { p50: number; p99: number; max: number };
}

async function load(
  { hostname, port, host }: URL,
  connections: number,
  first: number,
  count: number,
): Promise<LoadResult> {
  const requests = Array.from({ length: count }, (_, i) => changeRequest(host, first + i));
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

function changeRequest(host: string, number: number): Uint8Array {
  const body = JSON.stringify({
    user_id: `user-${number}`,
    stock_keeping_unit: "premium",
    reason: "purchase",
    purchase_id: `purchase-${number}`,
  });
  return new TextEncoder().encode(
    `POST /v1/entitlements/grants HTTP/1.1\r\nHost: ${host}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n` +
      `Idempotency-Key: key-${number}\r\n\r\n${body}`,
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
  const [url = "", connections, first, count] = Deno.args;
  const result = await load(new URL(url), Number(connections), Number(first), Number(count));
  console.log(JSON.stringify(result));
}
