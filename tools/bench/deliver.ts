// From PENDING to SENT: the delivery's own loop, through a channel that writes nowhere.
import { getLogger } from "@logtape/logtape";
import type pg from "pg";
import {
  claimNotifications,
  deliverNotifications,
  settleNotifications,
} from "../../notification/delivery.ts";
import { openDatabase } from "../../shared/postgres.ts";
import { Bell } from "../../shared/signals.ts";
import { asOwner, type BenchDatabase, countOf, makeDatabase, uuidOfRow } from "./database.ts";
import { type Bench, timed, type Work } from "./work.ts";

const batchSize = 200; // the service's own default
const lease = { worker: "bench", leaseMs: 60_000 };
const backoff = { baseMs: 1_000, maxMs: 60_000, minMs: 1_000, jitterMin: 0.5, jitterMax: 1.5 };

export async function startDeliver({ servers, quick }: Bench): Promise<Work> {
  const notifications = quick ? 20_000 : 100_000;
  const database = await makeDatabase(servers.postgres, "notification", "bench_deliver");
  const pool = openDatabase(database.serviceUrl, "bench");
  const log = getLogger("bench"); // not configured: writes nothing
  const channel = { send: () => Promise.resolve() };
  return {
    unit: "notifications/s",
    atMost: {},
    measure: async () => {
      await asOwner(database, (owner) => seed(owner, notifications));
      const stop = new AbortController();
      const parts = { database: pool, channel, received: new Bell(), log, abandon: stop.signal };
      const options = {
        ...{ ...lease, batchSize, backoff, maxAttempts: 10 },
        ...{ pollIntervalMs: 1_000, sendTimeoutMs: 10_000 },
      };
      let running: Promise<void> = Promise.resolve();
      const perSecond = await timed(notifications, async () => {
        running = deliverNotifications(parts, options, stop.signal);
        while (await unfinished(database) > 0) await new Promise((again) => setTimeout(again, 20));
      });
      stop.abort();
      await running;
      await assertSent(database, notifications);
      return { perSecond, figures: {} };
    },
    limits: [{
      name: "claim and settle",
      what: `the statements alone, in batches of ${batchSize}`,
      target: 0.5,
      measure: async () => {
        await asOwner(database, (owner) => seed(owner, notifications));
        const perSecond = await timed(notifications, async () => {
          let settling: Promise<unknown> = Promise.resolve();
          for (;;) {
            const rows = await claimNotifications(pool, lease, batchSize);
            await settling;
            if (rows.length === 0) return;
            const result = { sentAt: performance.now() };
            settling = settleNotifications(
              pool,
              rows.map((row) => ({ row, kind: "done", result })),
            );
          }
        });
        await assertSent(database, notifications);
        return perSecond;
      },
    }],
    [Symbol.asyncDispose]: () => pool.end(),
  };
}

async function seed(owner: pg.Client, notifications: number): Promise<void> {
  await owner.query("truncate notifications");
  await owner.query(
    `insert into notifications
       (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at, payload_json)
     select ${uuidOfRow}, ${uuidOfRow}, 'user-' || number, 'user-' || number || ':premium',
       1, 'EntitlementGranted', now(),
       jsonb_build_object('user_id', 'user-' || number, 'stock_keeping_unit', 'premium',
         'source', 'purchase', 'source_id', 'purchase-' || number, 'version', 1)
     from generate_series(1, $1::int) as number`,
    [notifications],
  );
  await owner.query("analyze notifications");
}

function unfinished(database: BenchDatabase): Promise<number> {
  return asOwner(database, (owner) => countOf(owner, "notifications where unfinished"));
}

async function assertSent(database: BenchDatabase, notifications: number): Promise<void> {
  const sent = await asOwner(
    database,
    (owner) => countOf(owner, "notifications where status = 'SENT' and attempt_count = 0"),
  );
  if (sent !== notifications) throw new Error(`${sent} of ${notifications} are SENT`);
}
