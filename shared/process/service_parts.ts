import { type Authenticator, authenticatorOf } from "../access/authenticator.ts";
import { rateLimited } from "../access/rate.ts";
import type { Checks } from "../http/common_routes.ts";
import { NatsLink } from "../nats/link.ts";
import { observePool } from "../postgres/pool_metrics.ts";
import { type Database, openDatabase, schemaIsCurrent } from "../postgres/postgres.ts";
import { collectFromDatabase, type Figure } from "../telemetry/collected.ts";
import type { Log } from "./log.ts";
import type { Service } from "./program.ts";
import type { DatabaseConfig, NatsConfig, ServiceConfig } from "./service_settings.ts";

// What a service needs before its own parts, by what it has: its database, its connection to NATS,
// and who may call.

export interface Part {
  checks: Checks; // of /readyz, each under the problem that it reports
  close(): Promise<void>;
}

export interface DatabasePart extends Part {
  database: Database;
}

/** `figures` are what a scrape reads from the tables. */
export function openTables(
  { name, database: tables }: Service,
  { databaseUrl, databaseTls }: DatabaseConfig,
  log: Log,
  figures: (database: Database) => Promise<Figure[]>,
): DatabasePart {
  if (!tables) throw new Error(`The descriptor of ${name} names no database`);
  const database = openDatabase(databaseUrl, name, databaseTls);
  observePool(database);
  collectFromDatabase(() => figures(database), log);
  return {
    database,
    checks: {
      "the database can't be reached or lacks migrations": () =>
        schemaIsCurrent(database, tables.schemaVersion),
    },
    close: () => database.end(),
  };
}

export interface NatsPart extends Part {
  link: NatsLink;
  natsIsAvailable: () => boolean;
}

/** `needsNats`: whether the service is ready only while it is connected. */
export function openNats(
  { name }: Service,
  { nats }: NatsConfig,
  log: Log,
  { needsNats }: { needsNats: boolean },
): NatsPart {
  const link = new NatsLink(nats, name, log);
  const natsIsAvailable = () => link.connected || !needsNats;
  return {
    link,
    natsIsAvailable,
    checks: {
      "NATS can't be reached": natsIsAvailable,
      "NATS lacks a stream or consumer, or has it with other settings": () =>
        !link.connected || link.unprovisioned.size === 0,
    },
    close: () => link.close(),
  };
}

export function openAccess({ name }: Service, config: ServiceConfig, log: Log): Authenticator {
  return rateLimited(authenticatorOf(name, config.access, log), config.rate);
}

/** One after the other: a part may use those that are closed after it. */
export async function closeAll(...parts: Part[]): Promise<void> {
  for (const part of parts) await part.close();
}
