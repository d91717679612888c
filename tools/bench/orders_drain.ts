// Orders from the table to SUCCEEDED: the worker of a real service, a real sender, and a sink in this
// process.
import type pg from "pg";
import { withClient } from "../servers/asking.ts";
import { makeDatabase } from "../servers/databases.ts";
import { type ServiceProcess, type Settings, startService } from "../servers/service_process.ts";
import { settingsOf } from "./both.ts";
import { hasRow } from "./database.ts";
import { assertSent, forgetOrders, secretKey } from "./order_rows.ts";
import { assertArrivedOnce, type Sink, startSink } from "./sink.ts";
import { type Bench, timed } from "./work.ts";

const token = "bench-".repeat(8);

/** A sender that may reach the sinks of the bench, and what notification must know of it. */
export async function startSender(): Promise<{ sender: ServiceProcess; settings: Settings }> {
  const sender = await startService("sender", {
    SENDER_TOKEN: token,
    SENDER_ALLOW_ADDRESSES: "127.0.0.1",
    SENDER_PLAIN_HTTP: "true",
  });
  return {
    sender,
    settings: {
      NOTIFICATION_SENDER_URL: sender.url,
      NOTIFICATION_SENDER_TOKEN: token,
      NOTIFICATION_ENDPOINTS_SECRET_KEY: secretKey.toBase64({
        alphabet: "base64url",
        omitPadding: true,
      }),
    },
  };
}

export interface OrdersOptions {
  name: string;
  sink?: Sink;
  /** Writes the orders of a run, and returns how many of them are sent. */
  addOrders(owner: pg.Client, sink: Sink): Promise<number>;
  settings?: Settings;
}

export interface OrdersDrain extends AsyncDisposable {
  sink: Sink;
  run(): Promise<number>;
}

export async function startOrdersDrain(
  { servers }: Bench,
  { name, sink = startSink(), addOrders, settings: more = {} }: OrdersOptions,
): Promise<OrdersDrain> {
  const database = await makeDatabase(servers.postgres, "notification", `bench_${name}`);
  const { sender, settings } = await startSender();
  const service = await startService("notification", {
    ...settingsOf("notification", servers, database, name),
    ...settings,
    NOTIFICATION_RETENTION_ENABLED: "false",
    NOTIFICATION_ORDERS_POLL_INTERVAL: "10ms", // until the first ones are found
    ...more,
  });
  return {
    sink,
    run: async () => {
      sink.arrivals.length = 0;
      const [sent, perSecond] = await withClient(database.ownerUrl, async (owner) => {
        await forgetOrders(owner);
        await owner.query("begin");
        const orders = await addOrders(owner, sink);
        await owner.query("analyze outbox_orders");
        await owner.query("commit"); // the worker sees them all at once
        return [orders, await timed(orders, () => untilSent(owner))];
      });
      await assertSent(database, sent);
      assertArrivedOnce(sink, sent);
      return perSecond;
    },
    [Symbol.asyncDispose]: async () => {
      await service.stop();
      await sender.stop();
      await sink[Symbol.asyncDispose]();
    },
  };
}

async function untilSent(owner: pg.Client): Promise<void> {
  await owner.query("set enable_seqscan = off"); // by the index of unfinished rows, as the service
  while (await hasRow(owner, "outbox_orders where unfinished")) {
    await new Promise((again) => setTimeout(again, 10));
  }
}
