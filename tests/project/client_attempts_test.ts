// The attempts of the client for TypeScript, against servers that answer badly or not at all: each
// attempt and each call ends in its time, and what is sent is what was asked for.
import assert from "node:assert/strict";
import { kenriClient, Unavailable } from "../../client/client.ts";
import { inTime } from "../../tools/servers/wait.ts";

const anHour = 3_600_000;

Deno.test("an attempt ends in its time though half of the answer has come", async () => {
  await using server = answering('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"user_id":');
  const client = kenriClient(server.url, { attemptTimeoutMs: 50, deadlineMs: 1_000 });
  const error = await inTime("it gives up", client.list("ann").catch((error) => error));
  assert.ok(error instanceof Unavailable, String(error));
  assert.ok(error.attempts > 1, `${error.attempts}`);
  assert.match(String(error.cause), /no answer within \d+ ms/);
});

Deno.test("an attempt that is still under way ends at the deadline of its call", async () => {
  await using server = answering("");
  const client = kenriClient(server.url, { attemptTimeoutMs: anHour, deadlineMs: anHour });
  const from = performance.now();
  const calling = client.list("ann", { deadlineMs: 300 }).catch((error) => error);
  const error = await inTime("it gives up", calling);
  assert.ok(error instanceof Unavailable, String(error));
  assert.equal(error.attempts, 1);
  assert.ok(performance.now() - from >= 299);
});

Deno.test("a pause that would last beyond the deadline is not begun", async () => {
  const head = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 3600\r\nContent-Length: 4\r\n\r\n";
  await using server = answering(`${head}busy`);
  const client = kenriClient(server.url);
  const error = await inTime("it gives up", client.list("ann").catch((error) => error));
  assert.ok(error instanceof Unavailable, String(error));
  assert.equal(error.attempts, 1);
  assert.match(String(error.cause), /status 503: busy/);
});

Deno.test("a call that its caller ends right before the deadline ends with the caller's reason", async () => {
  await using server = answering("");
  const enough = new AbortController();
  const calling = kenriClient(server.url, { deadlineMs: 220 }).list("ann", {
    signal: enough.signal,
  });
  setTimeout(() => enough.abort("enough"), 200); // no pause would end before the deadline
  assert.equal(await inTime("it ends", calling.catch((error) => error)), "enough");
});

Deno.test("a client's headers go with every request, and never in place of its own", async () => {
  const seen: Headers[] = [];
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  await using server = Deno.serve(options, ({ headers }) => {
    seen.push(headers);
    return Response.json({});
  });
  const headers = { "X-Shop": "7", "Idempotency-Key": "another", "Content-Type": "text/plain" };
  const client = kenriClient(`http://127.0.0.1:${server.addr.port}`, { headers });
  const fields = { user_id: "u", stock_keeping_unit: "s", reason: "r", purchase_id: "p" };
  await client.grant("key-1", fields, { traceId: "trace-1" });
  await client.list("u");
  const [change, list] = seen;
  const sent = (name: string) => [change?.get(name), list?.get(name)];
  assert.deepEqual(sent("X-Shop"), ["7", "7"]);
  assert.deepEqual(sent("X-Trace-Id"), ["trace-1", null]);
  assert.equal(change?.get("Idempotency-Key"), "key-1");
  assert.equal(change?.get("Content-Type"), "application/json");
});

Deno.test("a token from a function is asked for anew with each attempt", async () => {
  const shown: (string | null)[] = [];
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  await using server = Deno.serve(options, ({ headers }) => {
    shown.push(headers.get("Authorization"));
    return shown.length === 1 ? new Response("busy", { status: 503 }) : Response.json({});
  });
  let issued = 0;
  const token = () => `token-${++issued}`;
  await kenriClient(`http://127.0.0.1:${server.addr.port}`, { token }).list("ann");
  assert.deepEqual(shown, ["Bearer token-1", "Bearer token-2"]);
});

/** Says this to each request, and then nothing; the connection stays. */
function answering(text: string): AsyncDisposable & { url: string } {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const connections: Deno.Conn[] = [];
  const answer = async (connection: Deno.Conn) => {
    const bytes = new TextEncoder().encode(text);
    try {
      while (await connection.read(new Uint8Array(16_384)) !== null) await connection.write(bytes);
    } catch { /* It was closed. */ }
  };
  const answers: Promise<void>[] = [];
  const accepting = (async () => {
    for await (const connection of listener) {
      connections.push(connection);
      answers.push(answer(connection));
    }
  })();
  return {
    url: `http://127.0.0.1:${(listener.addr as Deno.NetAddr).port}`,
    [Symbol.asyncDispose]: async () => {
      listener.close();
      for (const connection of connections) connection.close();
      await Promise.all([accepting, ...answers]);
    },
  };
}
