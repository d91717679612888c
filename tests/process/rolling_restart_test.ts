// A new version is deployed by restarting one replica after the other under load.
import assert from "node:assert/strict";
import { startLoad } from "../../tools/load/load.ts";
import { RepeatingClient } from "../../tools/load/repeating_client.ts";
import { consumerInfo } from "../support/notification.ts";
import { assertDelivered, startSystem } from "../support/system.ts";
import { urlsOf } from "../../tools/load/stage.ts";

const rounds = 3;

Deno.test("both services are restarted replica by replica, and no request fails", async () => {
  await using system = await startSystem({ settings: { NOTIFICATION_DEBUG_ENABLED: "true" } });
  await using load = startLoad(urlsOf(system.replicas.entitlement));
  const readers = startReaders(new RepeatingClient(urlsOf(system.replicas.notification)));
  await load.goesOn(100);
  for (let round = 0; round < rounds; round++) {
    await Promise.all([system.restart("entitlement"), system.restart("notification")]);
    await load.goesOn(100);
  }
  const changes = await load.stop();
  const read = await readers.stop();
  report("changes", changes.length, load.client);
  report("inboxes", read, readers.client);

  assert.deepEqual([load.client.failures, readers.client.failures], [[], []]);
  const { outcomes } = load.client;
  assert.ok(outcomes["503"] || outcomes["not connected"], "the restarts were not noticed");
  await assertDelivered(system, changes);
  const { delivered } = await consumerInfo({ ...system, ...system.notification });
  assert.equal(delivered.consumer_seq, changes.length, "nothing was given to two replicas");
  await system.stop();
  for (const { log } of Object.values(system.everStarted).flat()) {
    assert.deepEqual(log.filter(({ level }) => level === "error"), []);
  }
});

interface Readers {
  client: RepeatingClient;
  stop(): Promise<number>;
}

function startReaders(client: RepeatingClient): Readers {
  let stopped = false;
  const read = async (user: number) => {
    let count = 0;
    for (; !stopped; count++) {
      const attempts = await client.ask({ path: `/debug/notification/inbox/user-${user}` });
      assert.equal(attempts.at(-1)?.answer?.status, 200);
    }
    return count;
  };
  const reading = [0, 1, 2, 3].map(read);
  const stop = async () => {
    stopped = true;
    return (await Promise.all(reading)).reduce((sum, count) => sum + count);
  };
  return { client, stop };
}

function report(what: string, count: number, client: RepeatingClient): void {
  const { outcomes, slowestMs } = client;
  console.log(
    `${count} ${what}: attempts ${JSON.stringify(outcomes)}, slowest ${Math.round(slowestMs)} ms`,
  );
}
