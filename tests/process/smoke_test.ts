import assert from "node:assert/strict";
import { freshDatabase } from "../support/databases.ts";
import { freshStreamNames, natsUrl, readStream } from "../support/streams.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("a granted right arrives in the stream", async () => {
  await using database = await freshDatabase("entitlement");
  const { stream, subject } = freshStreamNames();
  await using service = await startService("entitlement", {
    ENTITLEMENT_DATABASE_URL: database.serviceUrl,
    ENTITLEMENT_NATS_STREAM: stream,
    ENTITLEMENT_NATS_SUBJECT: subject,
    NATS_URL: natsUrl,
  });
  const answer = await fetch(`${service.url}/v1/entitlements/grants`, {
    method: "POST",
    headers: { "Idempotency-Key": "k1", "Content-Type": "application/json" },
    body: JSON.stringify({ user_id: "u", stock_keeping_unit: "s", reason: "r", purchase_id: "p" }),
  });
  assert.equal(answer.status, 200, await answer.text());
  await until("the stream has it", async () => (await readStream(natsUrl, stream)).length === 1);
  assert.equal(await service.stop(), 0);
});
