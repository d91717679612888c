// How long one change takes at a steady pace: from its commit to the PubAck, and to SENT.
import { connect } from "nats";
import type pg from "pg";
import { ensureStream } from "../../shared/jetstream.ts";
import { startService } from "../../tests/services.ts";
import { asOwner, countOf, makeDatabase } from "./database.ts";
import type { Bench, Work } from "./work.ts";

const perSecond = 200;

export async function startLatency({ servers, quick }: Bench): Promise<Work> {
  const changes = perSecond * (quick ? 4 : 15);
  const entitlement = await makeDatabase(servers.postgres, "entitlement", "bench_latency");
  const notification = await makeDatabase(servers.postgres, "notification", "bench_latency_sent");
  const connection = await connect({ servers: servers.nats.url });
  const settings = {
    ENTITLEMENT_DATABASE_URL: entitlement.serviceUrl,
    ENTITLEMENT_NATS_STREAM: "bench-latency",
    ENTITLEMENT_NATS_SUBJECT: "bench.latency",
    NOTIFICATION_DATABASE_URL: notification.serviceUrl,
    NOTIFICATION_NATS_STREAM: "bench-latency",
    NOTIFICATION_NATS_SUBJECT: "bench.latency",
    NOTIFICATION_NATS_DURABLE: "bench-latency",
    NATS_URL: servers.nats.url,
  };
  const services = await Promise.all([
    startService("entitlement", settings),
    startService("notification", settings),
  ]);
  const [{ url }] = services;
  const alone = { name: "bench-publish-alone", subject: "bench.publish.alone" };
  const manager = await connection.jetstreamManager();
  await ensureStream(manager, { ...alone, duplicateWindowMs: 120_000, replicas: 1 });
  let made = 0;
  const measure = async () => {
    const first = made;
    made += changes;
    const from = performance.now();
    const answers: Promise<number>[] = [];
    for (let i = first; i < made; i++) {
      const due = from + (i - first) / perSecond * 1_000;
      const early = due - performance.now();
      if (early > 0) await new Promise((go) => setTimeout(go, early));
      answers.push(grant(url, i));
    }
    if ((await Promise.all(answers)).some((status) => status !== 200)) throw new Error("Refused");
    const seconds = (performance.now() - from) / 1_000;
    const sent = () =>
      asOwner(notification, (owner) => countOf(owner, "notifications where status = 'SENT'"));
    while (await sent() < made) await new Promise((again) => setTimeout(again, 20));
    const acked = await asOwner(
      entitlement,
      (owner) => percentiles(owner, "published_at - created_at", "outbox_events", changes),
    );
    const arrived = await asOwner(
      notification,
      (owner) => percentiles(owner, "sent_at - occurred_at", "notifications", changes),
    );
    return {
      perSecond: changes / seconds,
      figures: {
        "PubAck p50 ms": acked.p50,
        "PubAck p99 ms": acked.p99,
        "SENT p50 ms": arrived.p50,
        "SENT p99 ms": arrived.p99,
      },
    };
  };
  return {
    unit: "changes/s",
    atMost: { "PubAck p50 ms": 1, "PubAck p99 ms": 4, "SENT p50 ms": 3, "SENT p99 ms": 12 },
    measure,
    limits: [{
      name: "publish",
      what: "round trips of one message after the other",
      target: 0,
      measure: async () => {
        const jetstream = connection.jetstream();
        const from = performance.now();
        for (let i = 0; i < perSecond; i++) await jetstream.publish(alone.subject, "");
        return perSecond / (performance.now() - from) * 1_000;
      },
    }],
    [Symbol.asyncDispose]: async () => {
      await Promise.all(services.map((service) => service.stop()));
      await connection.close();
    },
  };
}

async function grant(url: string, number: number): Promise<number> {
  const answer = await fetch(`${url}/v1/entitlements/grants`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": `key-${number}` },
    body: JSON.stringify({
      user_id: `user-${number}`,
      stock_keeping_unit: "premium",
      reason: "purchase",
      purchase_id: `purchase-${number}`,
    }),
  });
  await answer.body?.cancel();
  return answer.status;
}

// By the clock of the one server that both databases are on. The commit itself is a little later than
// the time that its rows carry, so the figures err on the side of caution.
async function percentiles(
  owner: pg.Client,
  delay: string,
  table: string,
  newest: number,
): Promise<{ p50: number; p99: number }> {
  const { rows: [row] } = await owner.query(
    `select percentile_cont(0.5) within group (order by ms) as p50,
       percentile_cont(0.99) within group (order by ms) as p99
     from (
       select extract(epoch from ${delay})::float8 * 1000 as ms
       from ${table} order by created_at desc limit $1
     ) as newest`,
    [newest],
  );
  return row;
}
