// From PENDING to SENT: the loop of the delivery, with a channel that writes nothing but checks the order.
import { getLogger } from "@logtape/logtape";
import type pg from "pg";
import type { Send } from "../../notification/channels/channel.ts";
import { type NotificationRow, notifications } from "../../notification/deliveries.ts";
import { deliverNotifications } from "../../notification/deliver_notifications.ts";
import { type Database, openDatabase, query } from "../../shared/postgres/postgres.ts";
import { Handover } from "../../shared/queue/handover.ts";
import type { DatabaseUrls } from "../load/stage.ts";
import { makeDatabase } from "../servers/databases.ts";
import {
  type Bench,
  type Drain,
  type DrainOptions,
  itemsOfDrain,
  timed,
  type Work,
} from "./work.ts";
import { expectRows, uuidOfRow } from "./database.ts";
import { withClient } from "../servers/asking.ts";

const batchSize = 200; // the service's own default
const lease = { worker: "bench", leaseMs: 60_000 };
const backoff = { baseMs: 1_000, maxMs: 60_000, minMs: 1_000, jitterMin: 0.5, jitterMax: 1.5 };
const deliveryOptions = {
  ...{ ...lease, batchSize, backoff, maxAttempts: 10 },
  ...{ pollIntervalMs: 1_000, sendTimeoutMs: 10_000 },
};

export async function startDeliver(bench: Bench): Promise<Work> {
  const delivery = await startDeliverDrain(bench, { name: "deliver" });
  const { database, items } = delivery;
  const pool = openDatabase(database.serviceUrl, "bench");
  return {
    unit: "notifications/s",
    atMost: {},
    measure: async () => ({ perSecond: await delivery.run(), figures: {} }),
    limits: [{
      name: "claim and settle",
      what: `the statements alone, in batches of ${batchSize}`,
      target: 0.5,
      measure: async () => {
        await withClient(database.ownerUrl, (owner) => seed(owner, items));
        const perSecond = await timed(items, async () => {
          let settling: Promise<unknown> = Promise.resolve();
          const claim = notifications.claimRepeatedly(pool, deliveryOptions);
          for (;;) {
            const { rows } = await claim(batchSize);
            await settling;
            if (rows.length === 0) return;
            const result = { sentAt: performance.now() };
            settling = notifications.settle(
              pool,
              rows.map((row) => ({ row, kind: "done", result })),
            );
          }
        });
        await assertSent(database, items);
        return perSecond;
      },
    }],
    [Symbol.asyncDispose]: async () => {
      await pool.end();
      await delivery[Symbol.asyncDispose]();
    },
  };
}

export async function startDeliverDrain(
  bench: Bench,
  { name, finished = 0, replicas = 1, items = itemsOfDrain(bench) }: DrainOptions,
): Promise<Drain> {
  const { servers } = bench;
  const database = await makeDatabase(servers.postgres, "notification", `bench_${name}`);
  await withClient(database.ownerUrl, (owner) => addFinished(owner, finished));
  const pools = Array.from({ length: replicas }, () => openDatabase(database.serviceUrl, "bench"));
  const log = getLogger("bench"); // not configured: writes nothing
  let sent = 0;
  return {
    database,
    items,
    run: async (keys = items) => {
      const options = { keys, keepOthers: finished > 0 };
      await withClient(database.ownerUrl, (owner) => seed(owner, items, options));
      const stop = new AbortController();
      const channel = new OrderedChannel();
      const parts = { channel, toDelivery: new Handover<NotificationRow>(), log };
      let running: Promise<unknown> = Promise.resolve();
      const perSecond = await timed(items, async () => {
        running = Promise.all(
          pools.map((pool) =>
            deliverNotifications(
              { ...parts, database: pool, abandon: stop.signal },
              deliveryOptions,
              stop.signal,
            )
          ),
        );
        const [pool] = pools;
        while (pool && await unfinished(pool)) await new Promise((again) => setTimeout(again, 20));
      });
      stop.abort();
      await running;
      sent = finished > 0 ? sent + items : items;
      await assertSent(database, sent);
      if (channel.early !== undefined) throw new Error(channel.early);
      return perSecond;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(pools.map((pool) => pool.end()));
    },
  };
}

/** Writes nothing, and notices a version that is not sent in its order. */
class OrderedChannel {
  early: string | undefined;
  readonly #versions = new Map<string, number>();

  send({ user_id, payload: { version } }: Send): Promise<void> {
    const expected = (this.#versions.get(user_id) ?? 0) + 1;
    this.#versions.set(user_id, expected);
    if (version !== expected) this.early ??= `Version ${version} of ${user_id} was sent too early`;
    return Promise.resolve();
  }
}

interface Seed {
  keys: number; // the number of users who share the notifications
  keepOthers: boolean;
}

async function seed(
  owner: pg.Client,
  notifications: number,
  { keys, keepOthers }: Seed = { keys: notifications, keepOthers: false },
): Promise<void> {
  if (!keepOthers) await owner.query("truncate notifications");
  await owner.query(insertNotifications("now()", "user-"), [notifications, keys]);
  if (!keepOthers) await owner.query("analyze notifications");
}

/** Notifications of yesterday, which were sent long ago, and their events. */
export async function addFinished(owner: pg.Client, notifications: number): Promise<void> {
  if (notifications === 0) return;
  const values = [notifications, notifications];
  await owner.query(insertNotifications("now() - interval '1 day'", "other-"), values);
  await owner.query(
    "insert into processed_events (event_id, processed_at) select event_id, created_at from notifications",
  );
  await owner.query("vacuum analyze notifications, processed_events");
}

// Those of other users are SENT.
function insertNotifications(at: string, prefix: "user-" | "other-"): string {
  const finished = prefix === "other-";
  return `
    insert into notifications
      (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at, payload_json,
       status, created_at, sent_at)
    select id, id, user_id, user_id || ':premium', version, 'EntitlementGranted', ${at},
      jsonb_build_object('user_id', user_id, 'stock_keeping_unit', 'premium',
        'source', 'purchase', 'source_id', 'purchase-' || number, 'version', version),
      ${finished ? "'SENT'" : "'PENDING'"}, ${at} + number * interval '1 microsecond',
      ${finished ? `${at} + interval '1 s'` : "null"}
    from (
      select number, ${uuidOfRow(at)} as id, '${prefix}' || number % $2::int as user_id,
        (number - 1) / $2::int + 1 as version
      from generate_series(1, $1::int) as number
    ) as notification`;
}

// The service's session uses the index of unfinished rows, whatever the statistics are.
async function unfinished(pool: Database): Promise<boolean> {
  return (await query(pool, "select from notifications where unfinished limit 1")).length > 0;
}

function assertSent(database: DatabaseUrls, notifications: number): Promise<void> {
  return expectRows(
    database,
    notifications,
    "notifications where status = 'SENT' and attempt_count = 0 and user_id like 'user-%'",
  );
}
