// Both services at work on one stream, each on a database of its own.
import { type ServiceProcess, startService } from "../servers/service_process.ts";
import type { Servers } from "../servers/servers.ts";
import { type BenchDatabase, makeDatabase } from "./database.ts";

export interface BothServices extends AsyncDisposable {
  entitlement: BenchDatabase;
  notification: BenchDatabase;
  settings: Record<string, string>;
  services: { entitlement: ServiceProcess; notification: ServiceProcess };
}

export async function startBoth({ postgres, nats }: Servers, name: string): Promise<BothServices> {
  const entitlement = await makeDatabase(postgres, "entitlement", `bench_${name}`);
  const notification = await makeDatabase(postgres, "notification", `bench_${name}_sent`);
  const settings = {
    ENTITLEMENT_DATABASE_URL: entitlement.serviceUrl,
    ENTITLEMENT_NATS_STREAM: `bench-${name}`,
    ENTITLEMENT_NATS_SUBJECT: `bench.${name}`,
    NOTIFICATION_DATABASE_URL: notification.serviceUrl,
    NOTIFICATION_NATS_STREAM: `bench-${name}`,
    NOTIFICATION_NATS_SUBJECT: `bench.${name}`,
    NOTIFICATION_NATS_DURABLE: `bench-${name}`,
    NATS_URL: nats.url,
  };
  const services = {
    entitlement: await startService("entitlement", settings),
    notification: await startService("notification", settings),
  };
  return {
    entitlement,
    notification,
    settings,
    services,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([services.entitlement.stop(), services.notification.stop()]);
    },
  };
}
