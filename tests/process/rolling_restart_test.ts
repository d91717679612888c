// A new version is deployed by restarting one replica after the other under load.
import assert from "node:assert/strict";
import { type Caller, startCaller } from "../../tools/load/caller.ts";
import { startLoad } from "../../tools/load/load.ts";
import { consumerInfo } from "../support/notification.ts";
import {
  assertKept,
  assertSentOnceInOrder,
  assertStreamInOrder,
  startSystem,
  untilAllSent,
  urlsOf,
} from "../support/system.ts";

const rounds = 3;

Deno.test("both services are restarted replica by replica, and no request fails", async () => {
  await using system = await startSystem({ settings: { NOTIFICATION_DEBUG_ENABLED: "true" } });
  await using load = startLoad(urlsOf(system.replicas.entitlement));
  const readers = startReaders(startCaller(urlsOf(system.replicas.notification)));
  await load.goesOn(100);
  for (let round = 0; round < rounds; round++) {
    await Promise.all([system.restart("entitlement"), system.restart("notification")]);
    await load.goesOn(100);
  }
  const changes = await load.stop();
  const read = await readers.stop();
  report("changes", changes.length, load.caller);
  report("inboxes", read, readers.caller);

  assert.deepEqual([load.caller.failures, readers.caller.failures], [[], []]);
  assert.ok(load.caller.refusals + load.caller.closedDoors > 0, "the restarts were not noticed");
  await untilAllSent(system, changes);
  await assertKept(system, changes);
  await assertStreamInOrder(system, changes);
  assertSentOnceInOrder(system, changes);
  const { delivered } = await consumerInfo({ ...system, ...system.notification });
  assert.equal(delivered.consumer_seq, changes.length, "nothing was given to two replicas");
  await system.stop();
  for (const { log } of Object.values(system.everStarted).flat()) {
    assert.deepEqual(log.filter(({ level }) => level === "error"), []);
  }
});

interface Readers {
  caller: Caller;
  stop(): Promise<number>;
}

function startReaders(caller: Caller): Readers {
  let stopped = false;
  const read = async (user: number) => {
    let count = 0;
    for (; !stopped; count++) {
      const answer = await caller.call(`/debug/notification/inbox/user-${user}`);
      await answer.body?.cancel();
      assert.equal(answer.status, 200);
    }
    return count;
  };
  const reading = [0, 1, 2, 3].map(read);
  const stop = async () => {
    stopped = true;
    return (await Promise.all(reading)).reduce((sum, count) => sum + count);
  };
  return { caller, stop };
}

function report(what: string, count: number, caller: Caller): void {
  const { refusals, closedDoors, slowestMs, failures } = caller;
  console.log(
    `${count} ${what}: ${failures.length} failed, ${refusals} times told to come back, ` +
      `${closedDoors} refused connections, the slowest ${Math.round(slowestMs)} ms`,
  );
}
