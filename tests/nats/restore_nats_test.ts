// NATS loses all its data, twice, while callers continue: nothing is lost, and nothing is sent twice.
import assert from "node:assert/strict";
import { startNats } from "../../tools/servers/nats.ts";
import { startLoad } from "../../tools/load/load.ts";
import { runQuery } from "../operators/runbook.ts";
import { assertDelivered, startSystem, untilAllSent } from "../support/system.ts";
import { urlsOf } from "../../tools/load/stage.ts";
import { until } from "../../tools/servers/wait.ts";

const losses = 2;

Deno.test("both services continue after NATS has lost everything", async () => {
  await using nats = await startNats();
  await using system = await startSystem({ natsUrl: nats.url });
  await using load = startLoad(urlsOf(system.replicas.entitlement));
  for (let loss = 0; loss < losses; loss++) {
    await load.goesOn(100);
    await nats.kill();
    await nats.wipe();
    await load.goesOn(50);
    await nats.start();
  }
  await load.goesOn(100);
  const changes = await load.stop();
  const stoppedAt = performance.now();
  await untilAllSent(system, changes);
  await until("nothing waits", async () => {
    return (await runQuery("NATS was lost", 0, system.entitlement.ownerUrl)).length === 0;
  });
  const { failures, outcomes, slowestMs } = load.client;
  console.log(
    `${changes.length} changes: attempts ${JSON.stringify(outcomes)}, ` +
      `slowest ${Math.round(slowestMs)} ms; all sent ` +
      `${Math.round(performance.now() - stoppedAt)} ms after the last one`,
  );
  assert.deepEqual([failures, outcomes["503"]], [[], undefined]);
  await assertDelivered(system, changes);
  await system.stop();
});
