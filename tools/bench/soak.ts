// Ten minutes at a steady pace through both services: not even one of 60,000 events may be late. A
// stall of a protocol delays only single events, which a shorter bench would miss.
import type { DatabaseUrls, Stage } from "../load/stage.ts";
import { startBoth, untilSent } from "./both.ts";
import { RepeatingClient } from "../load/repeating_client.ts";
import { changeAtPace, changeOf, percentile } from "./latency.ts";
import type { Bench, Work } from "./work.ts";
import { withClient } from "../servers/asking.ts";

const perSecond = 100;
const lateMs = 1_000;

export async function startSoak({ servers, quick }: Bench): Promise<Work> {
  const changes = perSecond * (quick ? 30 : 600);
  const both = await startBoth(servers, "soak");
  const measure = async () => {
    const ticker = startTicker();
    const { url } = both.one("entitlement");
    // Another program may slow the machine down for a moment; callers then try again.
    const client = new RepeatingClient([url], { pauseMs: 1_000 });
    const seconds = await changeAtPace({ changes, perSecond }, async (i) => {
      const { answer } = (await client.ask(changeOf(i))).at(-1) ?? {};
      if (answer?.status !== 200) throw new Error(`A change was refused: ${answer?.body}`);
    });
    await untilSent(both.notification, changes);
    const gaps = ticker.stop();
    const { acked, stored, sent } = await delaysOf(both, changes);
    const late = sent.filter(isLate);
    return {
      perSecond: changes / seconds,
      figures: {
        "SENT p50 ms": share(sent, 0.5),
        "SENT p99 ms": share(sent, 0.99),
        "SENT p99.9 ms": share(sent, 0.999),
        "SENT max ms": share(sent, 1),
        "SENT later than 1 s": late.length,
        "longest of these without gaps ms": Math.max(
          0,
          ...late.map((one) => withoutGaps(one, gaps)),
        ),
        "commit to PubAck max ms": share(acked, 1),
        "PubAck to stored p99.9 ms": share(stored, 0.999),
        "PubAck to stored max ms": share(stored, 1),
        "stored later than 1 s": stored.filter(isLate).length,
        "largest gap of an idle timer ms": Math.max(0, ...gaps.map(lengthOf)),
        "repeated requests": sum(Object.values(client.outcomes)) - changes,
      },
    };
  };
  return {
    unit: "changes/s",
    once: true,
    limits: [],
    atMost: { "SENT max ms": lateMs },
    measure,
    [Symbol.asyncDispose]: () => both[Symbol.asyncDispose](),
  };
}

// Both are in milliseconds since 1970.
type Span = [from: number, to: number];

const sum = (counts: number[]) => counts.reduce((all, count) => all + count, 0);
const lengthOf = ([from, to]: Span) => to - from;
const isLate = (span: Span) => lengthOf(span) > lateMs;
const share = (spans: Span[], share: number) => percentile(spans.map(lengthOf), share);

const tickMs = 10;
const gapMs = 50;

// Measures how late an idle timer is, to tell a delay by a busy machine from a delay by the services.
function startTicker() {
  const gaps: Span[] = [];
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    if (now - last > gapMs) {
      gaps.push([performance.timeOrigin + last + tickMs, performance.timeOrigin + now]);
    }
    last = now;
  }, tickMs);
  return {
    stop: () => {
      clearInterval(timer);
      return gaps;
    },
  };
}

function withoutGaps(span: Span, gaps: Span[]): number {
  const [begun, over] = span;
  const inGaps = gaps.map(([from, to]) => Math.min(over, to) - Math.max(begun, from))
    .filter((ms) => ms > 0);
  return inGaps.reduce((rest, ms) => rest - ms, lengthOf(span));
}

type Times = Record<string, number>; // by event_id

// All times are from the clock of the server that has both databases.
async function delaysOf(
  { entitlement, notification }: Stage,
  changes: number,
): Promise<Record<"acked" | "stored" | "sent", Span[]>> {
  const ask = async (database: DatabaseUrls, text: string): Promise<Times> =>
    await withClient(database.ownerUrl, async (owner) => {
      const { rows } = await owner.query<{ id: string; at: number }>(
        `select id, extract(epoch from at)::float8 * 1000 as at from (${text}) as row`,
      );
      if (rows.length !== changes) throw new Error(`${rows.length} of ${changes} rows exist`);
      return Object.fromEntries(rows.map(({ id, at }) => [id, at]));
    });
  const committed = await ask(
    entitlement,
    "select audit_id as id, pg_xact_commit_timestamp(xmin) as at from entitlement_audit",
  );
  const acked = await ask(
    entitlement,
    "select event_id as id, published_at as at from outbox_events",
  );
  const stored = await ask(
    notification,
    "select event_id as id, pg_xact_commit_timestamp(xmin) as at from processed_events",
  );
  const sent = await ask(notification, "select event_id as id, sent_at as at from notifications");
  const between = (from: Times, to: Times) =>
    Object.entries(from).map(([id, at]): Span => [at, to[id] ?? NaN]);
  return {
    acked: between(committed, acked),
    stored: between(acked, stored),
    sent: between(committed, sent),
  };
}
