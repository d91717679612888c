// Three replicas of both services on three NATS nodes, which are killed and restarted one after the other
// while clients continue. Afterwards the invariants of the whole system must hold.
import { type NatsCluster, startNatsCluster } from "../../tools/servers/nats_cluster.ts";
import { startLoad } from "../../tools/load/load.ts";
import { durable, urlsOf } from "../../tools/load/stage.ts";
import { withNats } from "../support/streams.ts";
import {
  assertKept,
  assertSentOnceInOrder,
  assertStreamInOrder,
  startSystem,
  untilAllSent,
} from "../support/system.ts";
import { until } from "../../tools/servers/wait.ts";

const changesPerOutage = 40;
// Elections take most of the time, and the load goes on meanwhile.
const clients = 3;
const electedWithinMs = 120_000; // NATS takes up to 9 s for an election, and there may be several

Deno.test("with three replicas of each, any NATS node may die: nothing is lost, doubled or out of order", async () => {
  await using cluster = await startNatsCluster();
  const settings = { NATS_REPLICAS: "3" };
  await using system = await startSystem({ replicas: 3, natsUrl: cluster.url, settings });
  await using load = startLoad(urlsOf(system.replicas.entitlement), "user", clients);
  for (const node of cluster.nodes) {
    await load.goesOn(changesPerOutage);
    await node.kill();
    await load.goesOn(changesPerOutage);
    await untilAllSent(system, [...load.changes], electedWithinMs); // two nodes carry on
    await node.start();
    await until(
      "it has caught up",
      () => everyNodeIsCurrent(cluster, system.stream),
      electedWithinMs,
    );
  }
  const changes = await load.stop();
  await untilAllSent(system, changes, electedWithinMs);

  await assertKept(system, changes);
  await assertStreamInOrder(system, changes);
  assertSentOnceInOrder(system, changes);
  await system.stop();
});

async function everyNodeIsCurrent({ url, nodes }: NatsCluster, stream: string): Promise<boolean> {
  return await withNats(url, async (connection) => {
    const manager = await connection.jetstreamManager();
    const { cluster } = await manager.streams.info(stream);
    const { cluster: consumers } = await manager.consumers.info(stream, durable);
    return [cluster, consumers].every((group) =>
      group?.leader && group.replicas?.length === nodes.length - 1 &&
      group.replicas.every(({ current, offline }) => current && !offline)
    );
  }).catch(() => false);
}
