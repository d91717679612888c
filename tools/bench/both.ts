// Services at work on a stream of their own.
import {
  bothPlaces,
  type DatabaseUrls,
  type FlowService,
  requiredSettings,
  type Stage,
  startStage,
} from "../load/stage.ts";
import { withClient } from "../servers/asking.ts";
import { makeDatabase } from "../servers/databases.ts";
import type { Servers } from "../servers/servers.ts";
import type { Settings } from "../servers/service_process.ts";
import { countOf, hasRow } from "./database.ts";

/** Each of the two services has a database of its own. */
export async function startBoth(
  servers: Servers,
  name: string,
  more: Settings = {},
): Promise<Stage> {
  const places = {
    ...brokerOf(servers, name),
    entitlement: await makeDatabase(servers.postgres, "entitlement", `bench_${name}`),
    notification: await makeDatabase(servers.postgres, "notification", `bench_${name}_sent`),
  };
  return await startStage(bothPlaces(places, more));
}

/** The place of a service that works alone. */
export function settingsOf(
  service: FlowService,
  servers: Servers,
  { serviceUrl }: DatabaseUrls,
  name: string,
): Settings {
  return requiredSettings(service, { ...brokerOf(servers, name), serviceUrl });
}

/** Waits until so many notifications are SENT. It counts them only when none is waiting, because a count reads all. */
export async function untilSent({ ownerUrl }: DatabaseUrls, count: number): Promise<void> {
  await withClient(ownerUrl, async (owner) => {
    await owner.query("set enable_seqscan = off"); // what is unfinished is found by its index
    for (;;) {
      const isWorking = await hasRow(owner, "notifications where unfinished");
      if (!isWorking && await countOf(owner, "notifications where status = 'SENT'") >= count) {
        return;
      }
      await new Promise((again) => setTimeout(again, 10));
    }
  });
}

/** Each service of matchmaking has a database of Redis for itself. */
export function matchmakingSettings(servers: Servers, name: string, database: number): Settings {
  const { natsUrl, stream, subject } = brokerOf(servers, name);
  return {
    REDIS_URL: new URL(`/${database}`, servers.redis.url).href,
    NATS_URL: natsUrl,
    MATCHMAKING_NATS_STREAM: stream,
    MATCHMAKING_NATS_SUBJECT: subject,
  };
}

function brokerOf({ nats }: Servers, name: string) {
  return { natsUrl: nats.url, stream: `bench-${name}`, subject: `bench.${name}` };
}
