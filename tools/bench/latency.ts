// How long one change takes at a steady pace, from its commit to the PubAck and to SENT: at 200/s, and
// at half of what the services can do.
import type pg from "pg";
import { grant, toHttp } from "../load/change_request.ts";
import type { HttpRequest } from "../load/http_request.ts";
import { runOpenLoop } from "../load/sockets.ts";
import { startBoth, untilSent } from "./both.ts";
import type { DatabaseUrls, Stage } from "../load/stage.ts";
import { changeUntilSent } from "./pipeline.ts";
import type { Bench, Sample, StartWork, Work } from "./work.ts";
import { withClient } from "../servers/asking.ts";

export const startLatency = latencyOf("latency", {
  "PubAck p50 ms": 1,
  "PubAck p99 ms": 4,
  "SENT p50 ms": 3,
  "SENT p99 ms": 6,
});

export const startLatencyAtHalf = latencyOf("latency_half", { "SENT p99 ms": 15 }, {
  ofCapacity: 0.5,
});

const perSecond = 200;

/** With `ofCapacity` the pace is this share of the rate that was measured right before. */
function latencyOf(
  name: string,
  atMost: Work["atMost"],
  { ofCapacity }: { ofCapacity?: number } = {},
): StartWork {
  return async ({ servers, quick }: Bench) => {
    const both = await startBoth(servers, name);
    let made = 0;
    const measure = async () => {
      let pace = perSecond;
      if (ofCapacity !== undefined) {
        const flood = { first: made, count: quick ? 15_000 : 50_000 };
        pace = Math.round((await changeUntilSent(both, flood)).perSecond * ofCapacity);
        made += flood.count;
      }
      const changes = pace * (quick ? 4 : 15);
      const sample = await measureAt(both, { perSecond: pace, first: made, changes });
      made += changes;
      return sample;
    };
    return {
      unit: "changes/s",
      atMost,
      measure,
      limits: [],
      [Symbol.asyncDispose]: () => both[Symbol.asyncDispose](),
    };
  };
}

async function measureAt(
  both: Stage,
  { perSecond, first, changes }: { perSecond: number; first: number; changes: number },
): Promise<Sample> {
  const load = { perSecond, seconds: changes / perSecond, first };
  const arrivals = await runOpenLoop(both.one("entitlement").url, load);
  const refused = arrivals.changes.find(({ status }) => status !== 200);
  if (refused) throw new Error(`A change failed with ${refused.status}`);
  await untilSent(both.notification, first + changes);
  const { acked, sent, settled } = await delaysOf(both, changes);
  return {
    perSecond: changes / arrivals.seconds,
    figures: {
      "PubAck p50 ms": acked.p50,
      "PubAck p99 ms": acked.p99,
      "SENT p50 ms": sent.p50,
      "SENT p99 ms": sent.p99,
      "settled p99 ms": settled.p99,
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

interface Delays {
  acked: Percentiles;
  sent: Percentiles;
  settled: Percentiles; // until the transaction that says so is committed
}

/** Of the newest changes, from the commit. All times are from the clock of the server that has both databases. */
export async function delaysOf(
  { entitlement, notification }: Pick<Stage, "entitlement" | "notification">,
  newest: number,
): Promise<Delays> {
  const published = await commitsOf(entitlement, newest);
  const committedAt = new Map(published.map(({ event_id, committed }) => [event_id, committed]));
  const delivered = await withClient(notification.ownerUrl, (owner) =>
    rowsOf(
      owner,
      `select event_id, extract(epoch from sent_at)::float8 * 1000 as reached,
         extract(epoch from pg_xact_commit_timestamp(xmin))::float8 * 1000 as committed
       from notifications order by occurred_at desc limit $1`,
      newest,
    ));
  const since = (event_id: string, at: number) => at - (committedAt.get(event_id) ?? NaN);
  return {
    acked: percentiles(published.map(({ committed, reached }) => reached - committed)),
    sent: percentiles(delivered.map(({ event_id, reached }) => since(event_id, reached))),
    settled: percentiles(delivered.map(({ event_id, committed }) => since(event_id, committed))),
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

export interface Percentiles {
  p50: number;
  p99: number;
  max: number;
}

export function percentiles(delays: number[]): Percentiles {
  return {
    p50: percentile(delays, 0.5),
    p99: percentile(delays, 0.99),
    max: percentile(delays, 1),
  };
}

/** The delay that this share of the delays does not exceed. Sorts them. */
export function percentile(delays: number[], share: number): number {
  const sorted = delays.sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) * share)] ?? NaN;
}
