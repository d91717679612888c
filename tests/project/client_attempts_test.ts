// The TypeScript client against servers that answer badly or not at all: each attempt and each call
// ends in time, and each request is sent as the caller wants it.
import assert from "node:assert/strict";
import { type Fetch, kenriClient, Unavailable } from "../../client/client.ts";
import { freePort } from "../../tools/servers/free_port.ts";
import { serve } from "../support/fake_service.ts";
import { inTime, until } from "../../tools/servers/wait.ts";

const anHour = 3_600_000;
const purchase = { user_id: "u", stock_keeping_unit: "s", reason: "r", purchase_id: "p" };

Deno.test("an attempt ends at its time limit even if half of the answer has arrived", async () => {
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

Deno.test("a pause that would last beyond the deadline is not started", async () => {
  const head = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 3600\r\nContent-Length: 4\r\n\r\n";
  await using server = answering(`${head}busy`);
  const client = kenriClient(server.url);
  const error = await inTime("it gives up", client.list("ann").catch((error) => error));
  assert.ok(error instanceof Unavailable, String(error));
  assert.equal(error.attempts, 1);
  assert.match(String(error.cause), /status 503: busy/);
});

Deno.test("a call that is aborted right before the deadline ends with the reason of the abort", async () => {
  await using server = answering("");
  const enough = new AbortController();
  const calling = kenriClient(server.url, { deadlineMs: 220 }).list("ann", {
    signal: enough.signal,
  });
  setTimeout(() => enough.abort("enough"), 200); // no pause would end before the deadline
  assert.equal(await inTime("it ends", calling.catch((error) => error)), "enough");
});

Deno.test("without an answer the client gives up at its deadline and reports the cause", async () => {
  const closed = kenriClient(`http://127.0.0.1:${freePort()}`, { deadlineMs: 2_000 });
  const refused = await closed.list("ann").catch((error) => error);
  assert.ok(refused instanceof Unavailable);
  assert.ok(refused.attempts > 1 && refused.cause instanceof TypeError);

  await using silent = answering("");
  const unheard = kenriClient(silent.url, { deadlineMs: 2_000, attemptTimeoutMs: 50 });
  const late = await unheard.grant("late-1", purchase).catch((error) => error);
  assert.ok(late instanceof Unavailable);
  assert.ok(late.attempts > 1, `${late.attempts}`);
  assert.match(String(late.cause), /no answer within \d+ ms/);
});

Deno.test("an abort ends the call at once, during an attempt and during a pause", async () => {
  await using silent = answering("");
  const later = { status: 503, headers: { "Retry-After": "3600" } };
  await using pausing = serve(() => new Response("later", later));
  let calls = 0;
  const counting: Fetch = (url, init) => {
    calls++;
    return fetch(url, init);
  };
  const urls = [silent.url, pausing.url];
  for (const [i, url] of urls.entries()) {
    const enough = new AbortController();
    const patience = { attemptTimeoutMs: 3_600_000, deadlineMs: 7_200_000 };
    const call = kenriClient(url, { fetch: counting, ...patience }).list("ann", {
      signal: enough.signal,
    });
    const reason = new Error("enough");
    await until("it is asked", () => calls > i);
    setTimeout(() => enough.abort(reason), 20);
    assert.equal(await inTime("it ends", call.catch((error) => error)), reason);
  }
  const before = kenriClient(silent.url, { fetch: counting }).list("ann", {
    signal: AbortSignal.abort("no"),
  });
  assert.equal(await before.catch((error) => error), "no");
  assert.equal(calls, urls.length);
});

Deno.test("the headers of the options are sent with every request and never replace the client's own", async () => {
  await using server = serve(() => Response.json({}));
  const headers = { "X-Shop": "7", "Idempotency-Key": "another", "Content-Type": "text/plain" };
  const client = kenriClient(server.url, { headers });
  await client.grant("key-1", purchase, { traceId: "trace-1" });
  await client.list("u");
  const [change, list] = server.asked.map(({ headers }) => headers);
  const sent = (name: string) => [change?.get(name), list?.get(name)];
  assert.deepEqual(sent("X-Shop"), ["7", "7"]);
  assert.deepEqual(sent("X-Trace-Id"), ["trace-1", null]);
  assert.equal(change?.get("Idempotency-Key"), "key-1");
  assert.equal(change?.get("Content-Type"), "application/json");
});

Deno.test("a token function is called again for each attempt", async () => {
  let asked = 0;
  await using server = serve(() => Response.json({}, { status: ++asked === 1 ? 503 : 200 }));
  let issued = 0;
  const token = () => `token-${++issued}`;
  await kenriClient(server.url, { token }).list("ann");
  const sent = server.asked.map(({ headers }) => headers.get("Authorization"));
  assert.deepEqual(sent, ["Bearer token-1", "Bearer token-2"]);
});

/** Answers each request with this text, and keeps the connection open. */
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
