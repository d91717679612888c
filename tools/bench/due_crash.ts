// What a crash in the middle of a flood costs: with a broker, of the scanner and of the worker; without one,
// of the service. Leases and the wait for an acknowledgement are the same, and short. And what a flood without
// a crash costs that waits in the queue for longer than the lease.
import { withClient } from "../servers/asking.ts";
import { makeDatabase } from "../servers/databases.ts";
import { startService } from "../servers/service_process.ts";
import { startBroker } from "./broker/processes.ts";
import { settingsOf } from "./both.ts";
import { countOf, hasRow } from "./database.ts";
import { batchSize } from "./due_drain.ts";
import { assertBalances, forgetPoints, reserve } from "./reservations.ts";
import type { Bench, Work } from "./work.ts";

const afterCrash = 20_000;
const inQueue = 100_000;
const leaseMs = 5_000;

export async function startDueCrash({ servers }: Bench): Promise<Work> {
  const makeOne = (name: string) =>
    makeDatabase(servers.postgres, "entitlement", `bench_crash_${name}`);
  const [table, queue] = [await makeOne("table"), await makeOne("queue")];
  const settings = {
    ...settingsOf("entitlement", servers, table, "crash"),
    ENTITLEMENT_OUTBOX_ENABLED: "false",
    ENTITLEMENT_RESERVATIONS_LEASE: `${leaseMs}ms`,
    ENTITLEMENT_RETENTION_ENABLED: "false",
  };

  return {
    unit: "reservations/s",
    once: true,
    atMost: {},
    limits: [],
    measure: async () => {
      let service = await startService("entitlement", settings);
      const seconds = {
        service: await secondsAfter(table.ownerUrl, async () => {
          await service.kill();
          service = await startService("entitlement", settings);
        }),
        scanner: 0,
        worker: 0,
      };
      await service.stop();
      const { serviceUrl: databaseUrl, ownerUrl } = queue;
      const given = { databaseUrl, name: "crash", batchSize, leaseMs };
      await using broker = await startBroker(servers, given);
      const published = [0];
      for (const part of ["scanner", "worker"] as const) {
        seconds[part] = await secondsAfter(ownerUrl, () => broker.crash(part));
        published.push(await broker.published());
      }
      const withoutCrash = await secondsAfter(ownerUrl, () => Promise.resolve(), inQueue);
      published.push(await broker.published());
      const [scanner = NaN, worker = NaN, flood = NaN] = published.slice(1)
        .map((count, i) => count - (published[i] ?? NaN));
      return {
        perSecond: inQueue * 3 / 4 / withoutCrash,
        figures: {
          "until all are granted, service s": seconds.service,
          "until all are granted, scanner s": seconds.scanner,
          "until all are granted, worker s": seconds.worker,
          "messages for each, scanner": scanner / afterCrash,
          "messages for each, worker": worker / afterCrash,
          "messages for each, no crash": flood / inQueue,
        },
      };
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** From the crash, after a quarter was granted, until all are. */
async function secondsAfter(
  ownerUrl: string,
  crash: () => Promise<unknown>,
  reservations = afterCrash,
): Promise<number> {
  const seconds = await withClient(ownerUrl, async (owner) => {
    await forgetPoints(owner);
    await reserve(owner, { reservations });
    while (await countOf(owner, "point_transactions") < reservations / 4) await shortly();
    const from = performance.now();
    await crash();
    while (await hasRow(owner, "point_reservations where unfinished")) await shortly();
    return (performance.now() - from) / 1_000;
  });
  await assertBalances({ ownerUrl, serviceUrl: "" }, reservations, reservations);
  return seconds;
}

const shortly = () => new Promise((again) => setTimeout(again, 20));
