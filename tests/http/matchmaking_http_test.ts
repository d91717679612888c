// The HTTP behaviour of the matchmaking service besides what it does.
import assert from "node:assert/strict";
import { assertError, call } from "../support/api.ts";
import { joined, startMatchmaking, untilPublished } from "../support/matchmaking.ts";
import { describedBy } from "./described.ts";

const queue = "/v1/matchmaking/queues/casual/tickets";

Deno.test("each path of the matchmaking service has its methods, and there are no others", async () => {
  await using service = await startMatchmaking();
  const id = await joined(service, "ann");
  const allowed = { [queue]: "POST", [`/v1/matchmaking/tickets/${id}`]: "DELETE, GET, HEAD" };
  for (const [path, allow] of Object.entries(allowed)) {
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"]) {
      if (allow.includes(method)) continue;
      const answer = await call(service.url + path, { method, headers: { "X-User-Id": "ann" } });
      assertError(answer, 405, "METHOD_NOT_ALLOWED");
      const named = (answer.headers.get("Allow") ?? "").split(", ").sort().join(", ");
      assert.equal(named, allow, path);
    }
  }
  const unknown = ["/", "/v1", "/v1/matchmaking", `${queue}/`, "/v1/matchmaking/tickets/", "/x"];
  for (const path of unknown) {
    assertError(await call(service.url + path), 404, "NOT_FOUND", "no such path");
  }
});

Deno.test("HEAD answers like GET, without the body", async () => {
  await using service = await startMatchmaking();
  const id = await joined(service, "ann");
  const headers = { "X-User-Id": "ann" };
  const url = `${service.url}/v1/matchmaking/tickets/${id}`;
  const [get, head] = [await call(url, { headers }), await call(url, { method: "HEAD", headers })];
  assert.deepEqual([get.status, head.status, head.text], [200, 200, ""]);
  assert.equal(head.headers.get("Content-Type"), get.headers.get("Content-Type"));
});

Deno.test("a join of 16 KiB is read, one byte more is refused, and so is what is not JSON", async () => {
  await using service = await startMatchmaking();
  const join = (body: string, type = "application/json") =>
    call(service.url + queue, {
      method: "POST",
      headers: { "X-User-Id": "ann", "Content-Type": type },
      body,
    });
  const start = '{"party_size":1,"idempotency_key":"k"';
  const sized = (bytes: number) => `${start}${" ".repeat(bytes - start.length - 1)}}`;
  assert.equal((await join(sized(16_384))).status, 200);
  assertError(await join(sized(16_385)), 413, "PAYLOAD_TOO_LARGE");
  for (const type of ["text/plain", "application/xml", "", "application/x-www-form-urlencoded"]) {
    assertError(await join(sized(100), type), 415, "UNSUPPORTED_MEDIA_TYPE");
  }
});

Deno.test("the trace id of a join reaches the events of its match", async () => {
  await using service = await startMatchmaking();
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  await call(service.url + queue, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-User-Id": "ann", "X-Trace-Id": traceId },
    body: '{"party_size":1,"idempotency_key":"k"}',
  });
  await joined(service, "bob");
  const events = await untilPublished(service, 2);
  const event = events.find(({ user_id }) => user_id === "ann");
  assert.equal(event?.trace_id, traceId);
});

Deno.test("the service describes its three routes and how each can fail", async () => {
  await using service = await startMatchmaking();
  const { api, operations } = await describedBy(service.url);
  assert.equal(api.openapi, "3.1.0");
  const own = operations.filter(({ name }) => / \/v1\//.test(name));
  assert.deepEqual(own.map(({ name }) => name).sort(), [
    "delete /v1/matchmaking/tickets/{ticket_id}",
    "get /v1/matchmaking/tickets/{ticket_id}",
    "post /v1/matchmaking/queues/{mode}/tickets",
  ]);
  for (const { name, described } of own) {
    assert.deepEqual(described.security, [{ bearer: ["matchmaking:act-as"] }], name);
    const answers = Object.keys(described.responses);
    for (const status of ["200", "400", "401", "403", "503"]) {
      assert.ok(answers.includes(status), `${name} ${status}`);
    }
  }
});
