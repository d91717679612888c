// How long one change takes at a steady pace, from its commit until a receiver has the webhook. The
// receiver is in this process and shares the clock of the machine with the database.
import { withClient } from "../servers/asking.ts";
import { until } from "../servers/wait.ts";
import { attempt } from "../load/repeating_client.ts";
import { startBoth } from "./both.ts";
import { changeAtPace, changeOf, commitsOf, percentiles } from "./latency.ts";
import { addEndpoint } from "./order_rows.ts";
import { startSender } from "./orders_drain.ts";
import { assertArrivedOnce, startSink } from "./sink.ts";
import type { Bench, Work } from "./work.ts";

const perSecond = 200;

export async function startWebhookLatency({ servers, quick }: Bench): Promise<Work> {
  const changes = perSecond * (quick ? 4 : 15);
  const { sender, settings } = await startSender();
  const both = await startBoth(servers, "webhook_latency", settings);
  const sink = startSink();
  const endpoint = { id: crypto.randomUUID(), url: sink.url, ordering: "key", atOnce: 4 } as const;
  await withClient(both.notification.ownerUrl, (owner) => addEndpoint(owner, endpoint));
  const { url } = both.one("entitlement");
  let made = 0;
  return {
    unit: "changes/s",
    atMost: { "received p50 ms": 6, "received p99 ms": 25 },
    measure: async () => {
      sink.arrivals.length = 0;
      const seconds = await changeAtPace({ changes, perSecond }, async (i) => {
        const { answer, problem } = await attempt(url, changeOf(made + i));
        if (answer?.status !== 200) throw new Error(`A change failed: ${problem}`);
      });
      made += changes;
      await until("all webhooks arrived", () => sink.arrivals.length >= changes);
      assertArrivedOnce(sink, changes);
      const commits = await commitsOf(both.entitlement, changes);
      const committedAt = new Map(commits.map(({ event_id, committed }) => [event_id, committed]));
      const received = sink.arrivals.map(({ id, at }) => at - (committedAt.get(id) ?? NaN));
      const { p50, p99 } = percentiles(received);
      return {
        perSecond: changes / seconds,
        figures: { "received p50 ms": p50, "received p99 ms": p99 },
      };
    },
    limits: [],
    [Symbol.asyncDispose]: async () => {
      await both[Symbol.asyncDispose]();
      await sender.stop();
      await sink[Symbol.asyncDispose]();
    },
  };
}
