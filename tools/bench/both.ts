// Both services at work on one stream, each on a database of its own.
import { bothPlaces, type Stage, startStage } from "../load/stage.ts";
import { makeDatabase } from "../servers/databases.ts";
import type { Servers } from "../servers/servers.ts";

export async function startBoth({ postgres, nats }: Servers, name: string): Promise<Stage> {
  return await startStage(bothPlaces({
    natsUrl: nats.url,
    stream: `bench-${name}`,
    subject: `bench.${name}`,
    entitlement: await makeDatabase(postgres, "entitlement", `bench_${name}`),
    notification: await makeDatabase(postgres, "notification", `bench_${name}_sent`),
  }));
}
