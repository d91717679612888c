// Reservations that are due, and who grants them: from the table to DONE, with transaction, balance, event
// and audit. The relay is off, because it has a line of its own.
import type pg from "pg";
import { withClient } from "../servers/asking.ts";
import { makeDatabase } from "../servers/databases.ts";
import { startService } from "../servers/service_process.ts";
import type { DatabaseUrls } from "../load/stage.ts";
import { startBroker } from "./broker/processes.ts";
import { settingsOf } from "./both.ts";
import { hasRow } from "./database.ts";
import { assertGranted, forgetPoints, isDue, nextYear, reserve } from "./reservations.ts";
import { type Bench, type Drain, type DrainOptions, itemsOfDrain, timed } from "./work.ts";

export const batchSize = 500; // the service's own default

/** The workers of real services. */
export function startDueDrain(bench: Bench, options: DrainOptions): Promise<Drain> {
  const { name, replicas = 1, pollInterval = "10ms" } = options; // until the first ones are found
  return startDrain(bench, options, async (database) => {
    const services = await Promise.all(
      Array.from({ length: replicas }, () =>
        startService("entitlement", {
          ...settingsOf("entitlement", bench.servers, database, name),
          ENTITLEMENT_OUTBOX_ENABLED: "false",
          ENTITLEMENT_RESERVATIONS_POLL_INTERVAL: pollInterval,
          ENTITLEMENT_RETENTION_ENABLED: "false",
        })),
    );
    return async () => void await Promise.all(services.map((service) => service.stop()));
  });
}

/** Scanner, broker and worker. */
export function startBrokerDrain(bench: Bench, options: DrainOptions): Promise<Drain> {
  const { name } = options;
  return startDrain(bench, options, async ({ serviceUrl }) => {
    const given = { databaseUrl: serviceUrl, name, batchSize, leaseMs: 30_000 };
    const broker = await startBroker(bench.servers, given);
    return () => broker[Symbol.asyncDispose]();
  });
}

async function startDrain(
  bench: Bench,
  { name, future = 0, items = itemsOfDrain(bench) }: DrainOptions,
  start: (database: DatabaseUrls) => Promise<() => PromiseLike<void>>,
): Promise<Drain> {
  const database = await makeDatabase(bench.servers.postgres, "entitlement", `bench_${name}`);
  const stop = await start(database);
  return {
    database,
    items,
    run: async (users = items) => {
      const perSecond = await withClient(database.ownerUrl, async (owner) => {
        await forgetPoints(owner);
        await reserve(owner, { reservations: future, at: nextYear });
        await makeDue(owner, items, users);
        return await timed(items, () => granted(owner));
      });
      await assertGranted(database, items, users);
      return perSecond;
    },
    [Symbol.asyncDispose]: stop,
  };
}

/** All of them are seen at once. */
async function makeDue(owner: pg.Client, reservations: number, users: number): Promise<void> {
  await owner.query("begin");
  await reserve(owner, { reservations, users });
  await owner.query("analyze point_reservations");
  await owner.query("commit");
}

async function granted(owner: pg.Client): Promise<void> {
  await owner.query("set enable_seqscan = off"); // among many others by the index, as the service
  while (await hasRow(owner, isDue)) await new Promise((again) => setTimeout(again, 10));
}
