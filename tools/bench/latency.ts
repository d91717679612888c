// How long one change takes at a steady pace: from its commit to the PubAck, and to SENT.
import type pg from "pg";
import { ensureStream } from "../../shared/nats/streams.ts";
import { grant, toHttp } from "../load/change_request.ts";
import type { HttpRequest } from "../load/http_request.ts";
import { attempt } from "../load/repeating_client.ts";
import { connectTo } from "../servers/nats_client.ts";
import { startBoth } from "./both.ts";
import type { DatabaseUrls } from "../load/stage.ts";
import type { Bench, Work } from "./work.ts";
import { countOf } from "./database.ts";
import { withClient } from "../servers/asking.ts";

const perSecond = 200;

export async function startLatency({ servers, quick }: Bench): Promise<Work> {
  const changes = perSecond * (quick ? 4 : 15);
  const both = await startBoth(servers, "latency");
  const { entitlement, notification } = both;
  const { url } = both.one("entitlement");
  const connection = await connectTo(servers.nats.url);
  const alone = { name: "bench-publish-alone", subject: "bench.publish.alone" };
  const manager = await connection.jetstreamManager();
  await ensureStream(manager, {
    name: alone.name,
    subjects: [alone.subject],
    duplicateWindowMs: 120_000,
    replicas: 1,
  });
  let made = 0;
  const measure = async () => {
    const seconds = await changeAtPace({ changes, perSecond }, async (i) => {
      const { answer, problem } = await attempt(url, changeOf(made + i));
      if (answer?.status !== 200) throw new Error(`A change failed: ${problem}`);
    });
    made += changes;
    await untilSent(notification, made);
    const { acked, arrived } = await delaysOf(entitlement, notification, changes);
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
      await both[Symbol.asyncDispose]();
      await connection.close();
    },
  };
}

/** A change of a new user. */
export function changeOf(number: number): HttpRequest {
  const [key, user, purchase] = [`key-${number}`, `user-${number}`, `purchase-${number}`];
  return toHttp(grant({ key, user, sku: "premium", reason: "purchase", purchase }));
}

/** Starts each change on time, however long others take. Returns the seconds that all took. */
export async function changeAtPace(
  { changes, perSecond }: { changes: number; perSecond: number },
  change: (index: number) => Promise<void>,
): Promise<number> {
  const from = performance.now();
  const answers: Promise<void>[] = [];
  for (let i = 0; i < changes; i++) {
    const due = from + i / perSecond * 1_000;
    const early = due - performance.now();
    if (early > 0) await new Promise((go) => setTimeout(go, early));
    answers.push(change(i));
  }
  await Promise.all(answers);
  return (performance.now() - from) / 1_000;
}

export async function untilSent(notification: DatabaseUrls, count: number): Promise<void> {
  await withClient(notification.ownerUrl, async (owner) => {
    while (await countOf(owner, "notifications where status = 'SENT'") < count) {
      await new Promise((again) => setTimeout(again, 20));
    }
  });
}

interface Delays {
  acked: { p50: number; p99: number };
  arrived: { p50: number; p99: number };
}

// All times are from the clock of the server that has both databases.
async function delaysOf(
  entitlement: DatabaseUrls,
  notification: DatabaseUrls,
  newest: number,
): Promise<Delays> {
  const published = await commitsOf(entitlement, newest);
  const sent = await withClient(notification.ownerUrl, (owner) =>
    rowsOf(
      owner,
      `select event_id, 0 as committed, extract(epoch from sent_at)::float8 * 1000 as reached
       from notifications order by occurred_at desc limit $1`,
      newest,
    ));
  const committedAt = new Map(published.map(({ event_id, committed }) => [event_id, committed]));
  return {
    acked: percentiles(published.map(({ committed, reached }) => reached - committed)),
    arrived: percentiles(
      sent.map(({ event_id, reached }) => reached - (committedAt.get(event_id) ?? NaN)),
    ),
  };
}

/** When the newest events were committed, and when the stream had them. An audit entry is never
 * changed, so its transaction is the commit of the change. */
export function commitsOf({ ownerUrl }: DatabaseUrls, newest: number): Promise<Reached[]> {
  return withClient(ownerUrl, (owner) =>
    rowsOf(
      owner,
      `select event_id, extract(epoch from committed_at)::float8 * 1000 as committed,
         extract(epoch from published_at)::float8 * 1000 as reached
       from outbox_events
       join (
         select audit_id, pg_xact_commit_timestamp(xmin) as committed_at
         from entitlement_audit order by occurred_at desc limit $1
       ) as change on audit_id = event_id`,
      newest,
    ));
}

interface Reached {
  event_id: string;
  committed: number;
  reached: number;
}

async function rowsOf(owner: pg.Client, text: string, newest: number): Promise<Reached[]> {
  const { rows } = await owner.query<Reached>(text, [newest]);
  if (rows.length !== newest) throw new Error(`${rows.length} of ${newest} rows exist`);
  return rows;
}

export function percentiles(delays: number[]): { p50: number; p99: number } {
  return { p50: percentile(delays, 0.5), p99: percentile(delays, 0.99) };
}

/** The delay that this share of the delays does not exceed. Sorts them. */
export function percentile(delays: number[], share: number): number {
  const sorted = delays.sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) * share)] ?? NaN;
}
