// Reservations that are due, and the workers of real services that grant them: from the table to DONE, with
// transaction, balance, event and audit. The relay is off, because it has a line of its own.
import type pg from "pg";
import { withClient } from "../servers/asking.ts";
import { makeDatabase } from "../servers/databases.ts";
import { startService } from "../servers/service_process.ts";
import { settingsOf } from "./both.ts";
import { hasRow } from "./database.ts";
import { assertGranted, forgetPoints, isDue, nextYear, reserve } from "./reservations.ts";
import { type Bench, type Drain, type DrainOptions, itemsOfDrain, timed } from "./work.ts";

export async function startDueDrain(bench: Bench, options: DrainOptions): Promise<Drain> {
  const { name, future = 0, replicas = 1, items = itemsOfDrain(bench) } = options;
  const { pollInterval = "10ms" } = options; // only until the worker has found the first ones
  const { servers } = bench;
  const database = await makeDatabase(servers.postgres, "entitlement", `bench_${name}`);
  const settings = {
    ...settingsOf("entitlement", servers, database, name),
    ENTITLEMENT_OUTBOX_ENABLED: "false",
    ENTITLEMENT_RESERVATIONS_POLL_INTERVAL: pollInterval,
    ENTITLEMENT_RETENTION_ENABLED: "false",
  };
  const services = await Promise.all(
    Array.from({ length: replicas }, () => startService("entitlement", settings)),
  );
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
    [Symbol.asyncDispose]: async () => {
      await Promise.all(services.map((service) => service.stop()));
    },
  };
}

/** The workers see all of them at once. */
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
