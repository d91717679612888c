// Both services at once, from HTTP to SENT, on one machine, and what they use of it under load. What
// each service uses while it has nothing to do is measured first.
import { memoryOf } from "../servers/memory.ts";
import { makeDatabase } from "../servers/databases.ts";
import type { DatabaseUrls, Stage } from "../load/stage.ts";
import { runLoad } from "../load/sockets.ts";
import { startBoth, untilSent } from "./both.ts";
import { changeFunction } from "./change_function.ts";
import { expectRows } from "./database.ts";
import { callPerCommit, sameWork } from "./function_per_commit.ts";
import { idleBounds, idleUseOfAll } from "./idle.ts";
import { delaysOf } from "./latency.ts";
import { withUse } from "./usage.ts";
import type { Bench, Work } from "./work.ts";

export async function startPipeline({ servers, quick }: Bench): Promise<Work> {
  const changes = quick ? 20_000 : 200_000;
  const idle = await idleUseOfAll(servers);
  const both = await startBoth(servers, "pipeline");
  const limitDatabase = await makeDatabase(servers.postgres, "entitlement", "bench_pipeline_limit");
  await changeFunction.make(limitDatabase);
  const pids = {
    PostgreSQL: servers.postgres.pid,
    "nats-server": servers.nats.pid,
    entitlement: both.one("entitlement").pid,
    notification: both.one("notification").pid,
  };
  let made = 0;
  let called = 0;
  return {
    unit: "changes/s",
    atMost: { "p99 ms": 35, "SENT max ms": 5_000, ...idleBounds },
    measure: async () => {
      const work = () => changeUntilSent(both, { first: made, count: changes });
      const { result, use } = await withUse(pids, changes, work);
      made += changes;
      await assertSentOnce(both.notification, made);
      const { sent } = await delaysOf(both, changes);
      return {
        perSecond: result.perSecond,
        figures: {
          "p99 ms": result.p99,
          "SENT p99 ms": sent.p99,
          "SENT max ms": sent.max,
          ...use,
          ...idle,
          "entitlement MiB": memoryOf(pids.entitlement).peakMebibytes,
          "notification MiB": memoryOf(pids.notification).peakMebibytes,
        },
      };
    },
    limits: [{
      ...sameWork,
      target: 0.6,
      measure: async () => {
        const count = Math.min(changes, 50_000);
        const perSecond = await callPerCommit(limitDatabase, changeFunction, {
          first: called,
          count,
        });
        called += count;
        return perSecond;
      },
    }],
    [Symbol.asyncDispose]: () => both[Symbol.asyncDispose](),
  };
}

interface Answered {
  perSecond: number; // from the first request until all are SENT
  p99: number; // of the answers, in milliseconds
}

/** Changes over 64 connections, each of a new user, until all are SENT. No others were made before. */
export async function changeUntilSent(
  both: Stage,
  { first, count }: { first: number; count: number },
): Promise<Answered> {
  const load = await runLoad(both.one("entitlement").url, "change", { first, count });
  const from = performance.now();
  await untilSent(both.notification, first + count);
  const seconds = load.seconds + (performance.now() - from) / 1_000;
  return { perSecond: count / seconds, p99: load.latenciesMs.p99 };
}

/** Fails unless every change has one notification that was sent once. */
function assertSentOnce(notification: DatabaseUrls, changes: number): Promise<void> {
  return expectRows(
    notification,
    changes,
    `(select from notifications join processed_events using (event_id)
      where status = 'SENT' and attempt_count = 0 and version = 1
      group by aggregate_key having count(*) = 1) as once`,
  );
}
