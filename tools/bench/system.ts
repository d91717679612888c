// Both services at once, from HTTP to SENT, on one machine, and what they use of it under load and idle.
// The limit is the slowest stage alone, which is the commit.
import { memoryOf } from "../servers/memory.ts";
import { startService } from "../servers/service_process.ts";
import type { DatabaseUrls } from "../load/stage.ts";
import { makeDatabase } from "../servers/databases.ts";
import type { Stage } from "../load/stage.ts";
import { startBoth } from "./both.ts";
import { untilSent } from "./latency.ts";
import { runLoad } from "../load/sockets.ts";
import { idleUse } from "./usage.ts";
import type { Bench, Work } from "./work.ts";
import { expectRows } from "./database.ts";
import { countRows } from "../servers/asking.ts";

export async function startSystem({ servers, quick }: Bench): Promise<Work> {
  const changes = quick ? 20_000 : 200_000; // about a minute
  const both = await startBoth(servers, "system");
  const { entitlement, notification, settings } = both;
  const services = {
    entitlement: both.one("entitlement"),
    notification: both.one("notification"),
  };
  const alone = await makeDatabase(servers.postgres, "entitlement", "bench_system_alone");
  const commits = await startService("entitlement", {
    ...settings,
    ENTITLEMENT_DATABASE_URL: alone.serviceUrl,
    ENTITLEMENT_OUTBOX_ENABLED: "false",
  });
  let made = 0;
  let madeAlone = 0;
  // Measured before the first change, so that the work of autovacuum does not count as the services'.
  const idle = {
    ...await idleUse("entitlement", services.entitlement.pid, entitlement),
    ...await idleUse("notification", services.notification.pid, notification),
  };
  return {
    unit: "changes/s",
    atMost: {
      "largest backlog s": 5,
      "entitlement MiB": 200,
      "notification MiB": 200,
      "entitlement idle % of a core": 1,
      "notification idle % of a core": 1,
      "entitlement idle queries/s": 3,
      "notification idle queries/s": 3,
    },
    measure: async () => {
      const from = performance.now();
      const load = runLoad(services.entitlement.url, "change", { first: made, count: changes });
      made += changes;
      const backlog = await largestBacklog(both, load);
      await untilSent(notification, made);
      const perSecond = changes / (performance.now() - from) * 1_000;
      await assertSentOnce(notification, made);
      return {
        perSecond,
        figures: {
          "largest backlog s": backlog / perSecond,
          "entitlement MiB": memoryOf(services.entitlement.pid).peakMebibytes,
          "notification MiB": memoryOf(services.notification.pid).peakMebibytes,
          ...idle,
        },
      };
    },
    limits: [{
      name: "commit alone",
      what: "over HTTP, without relay and notification",
      target: 0.3,
      measure: async () => {
        const count = Math.floor(changes / 4);
        const { seconds } = await runLoad(commits.url, "change", { first: madeAlone, count });
        madeAlone += count;
        return count / seconds;
      },
    }],
    [Symbol.asyncDispose]: async () => {
      await Promise.all([both[Symbol.asyncDispose](), commits.stop()]);
    },
  };
}

/** In events, until the load ends. */
async function largestBacklog(
  { entitlement, notification }: Stage,
  load: Promise<unknown>,
): Promise<number> {
  let loading = true;
  void load.finally(() => loading = false).catch(() => {});
  let largest = 0;
  while (loading) {
    await new Promise((again) => setTimeout(again, 1_000));
    const sent = await countRows(notification.ownerUrl, "notifications where status = 'SENT'");
    largest = Math.max(largest, await countRows(entitlement.ownerUrl, "outbox_events") - sent);
  }
  await load;
  return largest;
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
