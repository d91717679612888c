// Clients that begin a request and do not continue are disconnected, and delay nobody else.
import assert from "node:assert/strict";
import { grant, someFields } from "../support/api.ts";
import { startEntitlement } from "../support/entitlement.ts";
import { changeHead, connectTo, type RawAnswer, type RawConnection } from "./raw_http.ts";

const goodBody = JSON.stringify(someFields);
const announced = changeHead("Idempotency-Key: slow", "Content-Length: 1000");
const chunked = changeHead("Idempotency-Key: slow", "Transfer-Encoding: chunked");

Deno.test("a body that does not arrive within ten seconds is refused, even if bytes keep coming", async () => {
  await using kenri = await startEntitlement();
  const begunAt = performance.now();
  const waiting = [
    slowRequest(kenri.url, announced),
    slowRequest(kenri.url, announced + goodBody),
    slowRequest(kenri.url, chunked + "5\r\n{"),
    slowRequest(kenri.url, announced, " "), // byte by byte
  ];
  assert.equal((await grant(kenri.url, { user_id: "bob" })).status, 200);
  for (const answer of await Promise.all(waiting)) {
    assert.equal(answer?.status, 408);
    assert.deepEqual(JSON.parse(answer.text), {
      code: "REQUEST_TIMEOUT",
      message: "request body took over 10 seconds",
    });
  }
  const seconds = (performance.now() - begunAt) / 1_000;
  assert.ok(seconds > 9.5 && seconds < 13, `${seconds} s`);
  assert.equal((await kenri.counts()).idempotency_keys, 1);
});

async function slowRequest(
  url: string,
  begin: string,
  drip?: string,
): Promise<RawAnswer | undefined> {
  using connection = await connectTo(url);
  await connection.send(begin);
  const dripping = drip && setInterval(() => void connection.send(drip), 200);
  try {
    return await connection.answer();
  } finally {
    if (dripping) clearInterval(dripping);
  }
}

Deno.test("a silent client or an unfinished request does not delay a stop beyond the grace", async () => {
  for (const begin of ["", "GET /liv", "GET /livez HTTP/1.1\r\nHost: k", announced, chunked]) {
    await using kenri = await startEntitlement({ SHUTDOWN_GRACE: "2s" });
    using client: RawConnection = await connectTo(kenri.url);
    await client.send(begin);
    assert.equal((await grant(kenri.url)).status, 200);
    const stoppedAt = performance.now();
    assert.equal(await kenri.service.stop(), 0);
    const ms = performance.now() - stoppedAt;
    assert.ok(ms < 3_000, `${JSON.stringify(begin)}: ${ms} ms`);
  }
});
