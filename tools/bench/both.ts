// Services at work on a stream of their own.
import {
  bothPlaces,
  type DatabaseUrls,
  type FlowService,
  requiredSettings,
  type Stage,
  startStage,
} from "../load/stage.ts";
import { makeDatabase } from "../servers/databases.ts";
import type { Servers } from "../servers/servers.ts";
import type { Settings } from "../servers/service_process.ts";

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

function brokerOf({ nats }: Servers, name: string) {
  return { natsUrl: nats.url, stream: `bench-${name}`, subject: `bench.${name}` };
}
