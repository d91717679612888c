// Orders until they are SUCCEEDED: how fast they are sent and recorded in the ledger, what a dead
// endpoint takes from the others, and what the order of keys costs.
import type pg from "pg";
import { barePosts } from "./bare_posts.ts";
import { addEndpoint, addPlainOrders, addWebhooks, type Endpoint, payload } from "./order_rows.ts";
import { startOrdersDrain } from "./orders_drain.ts";
import { startSink } from "./sink.ts";
import type { Bench, Work } from "./work.ts";

const atOnce = 64;

export async function startOrders(bench: Bench): Promise<Work> {
  const orders = bench.quick ? 10_000 : 50_000;
  const drain = await startOrdersDrain(bench, {
    name: "orders",
    settings: { NOTIFICATION_ENDPOINTS_AT_ONCE: `${atOnce}` },
    addOrders: async (owner, { url }) => {
      await addPlainOrders(owner, orders, url);
      return orders;
    },
  });
  const { url, arrivals } = drain.sink;
  return {
    unit: "orders/s",
    atMost: {},
    measure: async () => ({ perSecond: await drain.run(), figures: {} }),
    limits: [{
      name: "bare POSTs",
      what: `of the same bodies as the sender makes them, ${atOnce} at once`,
      target: 0.5,
      measure: async () => {
        arrivals.length = 0;
        return await barePosts({ url, body: JSON.stringify(payload), count: orders, atOnce });
      },
    }],
    [Symbol.asyncDispose]: () => drain[Symbol.asyncDispose](),
  };
}

const endpoints = 100;
const nobody = "http://127.0.0.1:1/"; // refuses each connection

/** All orders of the dead one are parked, and it is probed all the time. */
export async function startOrdersBesideDead(bench: Bench): Promise<Work> {
  const orders = bench.quick ? 10_000 : 50_000;
  const start = (name: string, parked: number) =>
    startOrdersDrain(bench, {
      name,
      addOrders: async (owner, { url }) => {
        const all = Array.from({ length: endpoints }, (_, i): Endpoint => ({
          id: crypto.randomUUID(),
          url: `${url}/${i}`,
          ordering: "key",
          atOnce: 4, // the default
        }));
        const dead = parked > 0
          ? all.splice(0, 1).map((one) => ({ ...one, url: nobody, isDead: true }))
          : [];
        await addAll(owner, [...all, ...dead]);
        await addWebhooks(owner, { orders, endpoints: all, keys: orders });
        if (parked > 0) {
          await addWebhooks(owner, { orders: parked, endpoints: dead, keys: parked, parked: true });
        }
        return orders;
      },
    });
  const beside = await start("orders_beside_dead", 100_000);
  const alone = await start("orders_alone", 0);
  return {
    unit: "webhooks/s",
    atMost: {},
    measure: async () => ({ perSecond: await beside.run(), figures: {} }),
    limits: [{
      name: "the same without a dead one",
      what: `to ${endpoints} endpoints of which none is dead`,
      target: 0.9,
      measure: () => alone.run(),
    }],
    [Symbol.asyncDispose]: async () => {
      await beside[Symbol.asyncDispose]();
      await alone[Symbol.asyncDispose]();
    },
  };
}

const keys = 64;
const answerAfterMs = 20;

export async function startOrdersByKey(bench: Bench): Promise<Work> {
  const start = (ordering: Endpoint["ordering"], orders: number) =>
    startOrdersDrain(bench, {
      name: `orders_by_${ordering}`,
      sink: startSink(answerAfterMs),
      addOrders: async (owner, { url }) => {
        const endpoint = { id: crypto.randomUUID(), url, ordering, atOnce };
        await addAll(owner, [endpoint]);
        await addWebhooks(owner, { orders, endpoints: [endpoint], keys });
        return orders;
      },
    });
  const byKey = await start("key", bench.quick ? 4_000 : 20_000);
  const byEndpoint = await start("endpoint", bench.quick ? 100 : 500);
  return {
    unit: "webhooks/s",
    atMost: {},
    measure: async () => ({ perSecond: await byKey.run(), figures: {} }),
    limits: [{
      name: "one after the other",
      what: `with \`ordering: endpoint\`, not of ${keys} keys`,
      target: 20,
      measure: () => byEndpoint.run(),
    }],
    [Symbol.asyncDispose]: async () => {
      await byKey[Symbol.asyncDispose]();
      await byEndpoint[Symbol.asyncDispose]();
    },
  };
}

async function addAll(owner: pg.Client, endpoints: Endpoint[]): Promise<void> {
  for (const endpoint of endpoints) await addEndpoint(owner, endpoint);
}
