// With OTEL_DENO a join and the event of its match are one trace, for each of the two users.
import assert from "node:assert/strict";
import { until } from "../../tools/servers/wait.ts";
import { call } from "../support/api.ts";
import { startMatchmaking } from "../support/matchmaking.ts";
import { natsUrl, readStream } from "../support/streams.ts";
import { receiveTraces } from "./otlp.ts";

Deno.test("a join is one trace with the event of its match", async () => {
  await using receiver = receiveTraces();
  await using service = await startMatchmaking(receiver.settings("matchmaking"));
  const traces = new Map<string, string>();
  for (const user of ["secret-ann", "secret-bob"]) {
    const traceId = crypto.randomUUID().replaceAll("-", "");
    traces.set(user, traceId);
    const { status } = await call(`${service.url}/v1/matchmaking/queues/casual/tickets`, {
      method: "POST",
      headers: {
        "X-User-Id": user,
        "Content-Type": "application/json",
        traceparent: `00-${traceId}-b7ad6b7169203331-01`,
      },
      body: JSON.stringify({ party_size: 1, attributes: {}, idempotency_key: user }),
    });
    assert.equal(status, 200);
  }
  await until(
    "both events are published",
    async () => (await readStream(natsUrl, service.stream)).length === 2,
  );
  const messages = await readStream(natsUrl, service.stream);
  await service.service.stop(); // a service sends its last spans at the exit
  for (const traceId of traces.values()) {
    const spans = receiver.spans.filter((span) => span.traceId === traceId);
    const join = spans.find(({ name }) => name === "POST /v1/matchmaking/queues/{mode}/tickets");
    const publish = spans.find(({ name }) => name.startsWith("publish "));
    assert.equal(publish?.parentSpanId, join?.spanId, JSON.stringify(spans));
    // The receiver goes on with the trace from the header of the message.
    const headers = messages.map(({ header }) => header.get("traceparent"));
    assert.ok(headers.includes(`00-${traceId}-${publish?.spanId}-01`), headers.join());
  }
  assert.ok(!JSON.stringify(receiver.spans).includes("secret"));
});
