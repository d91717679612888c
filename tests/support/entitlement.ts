// The entitlement service with a database and stream names of its own, and access to its tables.
import { requiredSettings } from "../../tools/load/stage.ts";
import { ask } from "../../tools/servers/asking.ts";
import { freshDatabase, type TestDatabase } from "./databases.ts";
import {
  type ServiceProcess,
  type Settings,
  startService,
} from "../../tools/servers/service_process.ts";
import { freshStreamNames, natsUrl, type StreamNames } from "./streams.ts";
import { until } from "../../tools/servers/wait.ts";

export { ask };

export interface Entitlement extends StreamNames, AsyncDisposable {
  url: string;
  service: ServiceProcess;
  database: TestDatabase;
  settings: Settings; // to start a replica
  rows<Row>(sql: string, values?: unknown[]): Promise<Row[]>; // as the owner
  counts(): Promise<RowCounts>;
  close(): Promise<void>;
}

export function settingsOf(databaseUrl: string, names: StreamNames = freshStreamNames()): Settings {
  return requiredSettings("entitlement", { ...names, natsUrl, serviceUrl: databaseUrl });
}

export async function startEntitlement(more: Settings = {}): Promise<Entitlement> {
  const database = await freshDatabase("entitlement");
  const names = freshStreamNames();
  const settings = { ...settingsOf(database.serviceUrl, names), ...more };
  const service = await startService("entitlement", settings);
  // This is the last line that a start logs. After it the log is silent, so that no read of the log
  // starts in one test and completes in another when several tests share the service.
  await until(
    "it relays",
    () => service.log.some(({ message }) => / has one replica/.test(message)),
  );
  const close = async () => {
    await service.kill();
    await database.drop();
  };
  return {
    ...names,
    url: service.url,
    service,
    database,
    settings,
    rows: (sql, values) => ask(database.ownerUrl, sql, values),
    counts: () => rowCounts(database.ownerUrl),
    close,
    [Symbol.asyncDispose]: close,
  };
}

export interface RowCounts {
  entitlements: number;
  idempotency_keys: number;
  outbox_events: number;
  entitlement_audit: number;
}

export async function rowCounts(ownerUrl: string): Promise<RowCounts> {
  const [counts] = await ask<RowCounts>(
    ownerUrl,
    `select (select count(*)::int from entitlements) as entitlements,
       (select count(*)::int from idempotency_keys) as idempotency_keys,
       (select count(*)::int from outbox_events) as outbox_events,
       (select count(*)::int from entitlement_audit) as entitlement_audit`,
  );
  return counts as RowCounts;
}
