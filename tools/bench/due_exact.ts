// How late reservations are granted that become due one after the other: by the database's clock, from
// execute_at to the time of the transaction, to done_at and to the commit. The relay is on.
import type pg from "pg";
import { withClient } from "../servers/asking.ts";
import { makeDatabase } from "../servers/databases.ts";
import { startService } from "../servers/service_process.ts";
import type { DatabaseUrls } from "../load/stage.ts";
import type { Servers } from "../servers/servers.ts";
import { startBroker } from "./broker/processes.ts";
import { settingsOf } from "./both.ts";
import { hasRow } from "./database.ts";
import { batchSize } from "./due_drain.ts";
import { percentile } from "./latency.ts";
import { assertGranted, forgetPoints, reserve } from "./reservations.ts";
import type { StartWork } from "./work.ts";

const perSecond = 200;
const ahead = "now() + interval '2 s'"; // all are reserved by then

type Start = (servers: Servers, database: DatabaseUrls, name: string) => Promise<AsyncDisposable>;

export const startDueExact = exactOf("due_exact", (servers, database, name) => {
  const settings = settingsOf("entitlement", servers, database, name);
  return startService("entitlement", { ...settings, ENTITLEMENT_RETENTION_ENABLED: "false" });
}, { "lateness p50 ms": 10, "lateness p99 ms": 50 });

export const startBrokerExact = exactOf("due_exact_broker", async (servers, database, name) => {
  const settings = settingsOf("entitlement", servers, database, name);
  const relay = await startService("entitlement", {
    ...settings,
    ENTITLEMENT_RESERVATIONS_ENABLED: "false",
    ENTITLEMENT_RETENTION_ENABLED: "false",
  });
  const { serviceUrl: databaseUrl } = database;
  const broker = await startBroker(servers, { databaseUrl, name, batchSize, leaseMs: 30_000 });
  return {
    [Symbol.asyncDispose]: async () => {
      await broker[Symbol.asyncDispose]();
      await relay.stop();
    },
  };
}, {});

function exactOf(name: string, start: Start, atMost: Record<string, number>): StartWork {
  return async ({ servers, quick }) => {
    const count = perSecond * (quick ? 8 : 60);
    const database = await makeDatabase(servers.postgres, "entitlement", `bench_${name}`);
    const running = await start(servers, database, name);
    const at = `${ahead} + number * interval '1 s' / ${perSecond}`;
    return {
      unit: "reservations/s",
      once: !quick,
      atMost,
      limits: [],
      measure: async () => {
        const figures = await withClient(database.ownerUrl, async (owner) => {
          await forgetPoints(owner);
          await reserve(owner, { reservations: count, at });
          while (await hasRow(owner, "point_reservations where unfinished")) {
            await new Promise((again) => setTimeout(again, 500));
          }
          return await lateness(owner);
        });
        await assertGranted(database, count);
        return { perSecond, figures };
      },
      [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
    };
  };
}

interface Late {
  lateness: number;
  done: number;
  visible: number;
}

async function lateness(owner: pg.Client): Promise<Record<string, number>> {
  const after = (at: string) => `extract(epoch from ${at} - execute_at)::float8 * 1000`;
  const { rows } = await owner.query<Late>(`
    select ${after("transaction.created_at")} as lateness, ${after("done_at")} as done,
      ${after("pg_xact_commit_timestamp(transaction.xmin)")} as visible
    from point_reservations
    join point_transactions transaction on transaction.id = transaction_id`);
  const early = rows.filter(({ lateness }) => lateness < 0).length;
  if (early > 0) throw new Error(`${early} reservations were granted too early`);
  const share = (of: keyof Late, share: number) => percentile(rows.map((row) => row[of]), share);
  return {
    "lateness p50 ms": share("lateness", 0.5),
    "lateness p99 ms": share("lateness", 0.99),
    "lateness max ms": share("lateness", 1),
    "done_at p99 ms": share("done", 0.99),
    "committed p50 ms": share("visible", 0.5),
    "committed p99 ms": share("visible", 0.99),
  };
}
