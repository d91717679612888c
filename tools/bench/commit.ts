// Commands over HTTP, each of a new user and with a new key. The workers are off: the lines about the
// relay, about what is due and about the whole system show their cost.
import pg from "pg";
import { startService } from "../servers/service_process.ts";
import { makeDatabase } from "../servers/databases.ts";
import type { DatabaseUrls } from "../load/stage.ts";
import { assertCommitted, callChangeFunction, makeChangeFunction } from "./change_function.ts";
import { type LoadKind, runLoad } from "../load/sockets.ts";
import { assertReserved, callReserveFunction, makeReserveFunction } from "./reserve_function.ts";
import { shared, type StartWork, timed } from "./work.ts";
import { settingsOf } from "./both.ts";

const limitConnections = 32; // the best of 8, 16, 32 and 64

interface Requests {
  kind: LoadKind;
  unit: string;
  makeFunction(database: DatabaseUrls): Promise<unknown>;
  callFunction(pool: pg.Pool, number: number): Promise<unknown>;
  assertDone(database: DatabaseUrls, made: number): Promise<void>;
}

const changes: Requests = {
  kind: "change",
  unit: "changes/s",
  makeFunction: makeChangeFunction,
  callFunction: callChangeFunction,
  assertDone: assertCommitted,
};

const reservations: Requests = {
  kind: "reserve",
  unit: "reservations/s",
  makeFunction: makeReserveFunction,
  callFunction: callReserveFunction,
  assertDone: assertReserved,
};

export const startCommit = commitOf(changes);
export const startReserve = commitOf(reservations);

function commitOf({ kind, unit, makeFunction, callFunction, assertDone }: Requests): StartWork {
  return async ({ servers, quick }) => {
    const count = quick ? 8_000 : 30_000;
    const database = await makeDatabase(servers.postgres, "entitlement", `bench_${kind}`);
    await makeFunction(database);
    const service = await startService("entitlement", {
      ...settingsOf("entitlement", servers, database, kind),
      ENTITLEMENT_OUTBOX_ENABLED: "false",
      ENTITLEMENT_RESERVATIONS_ENABLED: "false",
      ENTITLEMENT_RETENTION_ENABLED: "false",
    });
    const pool = new pg.Pool({ connectionString: database.ownerUrl, max: limitConnections });
    let made = 0;
    const checked = async <Result>(
      measure: (first: number) => Promise<Result>,
    ): Promise<Result> => {
      const result = await measure(made);
      made += count;
      await assertDone(database, made);
      return result;
    };
    return {
      unit,
      atMost: { "p99 ms": 25 },
      measure: () =>
        checked(async (first) => {
          const { seconds, latenciesMs } = await runLoad(service.url, kind, { first, count });
          const { p50, p99 } = latenciesMs;
          return { perSecond: count / seconds, figures: { "p50 ms": p50, "p99 ms": p99 } };
        }),
      limits: [{
        name: "one function call per commit",
        what: `through the driver, ${limitConnections} connections, no HTTP`,
        target: 1.5,
        measure: () =>
          checked((first) =>
            timed(
              count,
              () => shared(count, limitConnections, (i) => callFunction(pool, first + i)),
            )
          ),
      }],
      [Symbol.asyncDispose]: async () => {
        await pool.end();
        await service.stop();
      },
    };
  };
}
