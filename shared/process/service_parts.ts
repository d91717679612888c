import { type Authenticator, authenticatorOf } from "../access/authenticator.ts";
import { rateLimited } from "../access/rate.ts";
import type { Checks } from "../http/common_routes.ts";
import { NatsLink } from "../nats/link.ts";
import { observePool } from "../postgres/pool_metrics.ts";
import { type Database, openDatabase, schemaIsCurrent } from "../postgres/postgres.ts";
import { collectFromDatabase, type Figure } from "../telemetry/collected.ts";
import type { Log } from "./log.ts";
import type { Service } from "./program.ts";
import type { ServiceConfig } from "./service_settings.ts";

// What every service needs before its own parts: its database, its connection to NATS, and who may
// call.

export interface ServiceParts {
  database: Database;
  link: NatsLink;
  authenticator: Authenticator;
  checks: Checks; // of /readyz, each under the problem that it reports
  natsIsAvailable: () => boolean;
  close(): Promise<void>;
}

interface Needs {
  needsNats: boolean; // whether it is ready only while it is connected to NATS
  figures: (database: Database) => Promise<Figure[]>; // what a scrape reads from the tables
}

export function openParts(
  { name, database: tables }: Service,
  config: ServiceConfig,
  log: Log,
  { needsNats, figures }: Needs,
): ServiceParts {
  const database = openDatabase(config.databaseUrl, name, config.databaseTls);
  const link = new NatsLink(config.nats, name, log);
  const natsIsAvailable = () => link.connected || !needsNats;
  observePool(database);
  collectFromDatabase(() => figures(database), log);
  return {
    database,
    link,
    authenticator: rateLimited(authenticatorOf(name, config.access, log), config.rate),
    checks: {
      "the database can't be reached or lacks migrations": () =>
        schemaIsCurrent(database, tables?.schemaVersion ?? 0),
      "NATS can't be reached": natsIsAvailable,
      "NATS lacks a stream or consumer, or has it with other settings": () =>
        !link.connected || link.unprovisioned.size === 0,
    },
    natsIsAvailable,
    close: async () => {
      await link.close();
      await database.end();
    },
  };
}
