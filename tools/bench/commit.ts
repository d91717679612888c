// Changes over HTTP, each of a new user and with a new key. The relay is off: the lines about the relay
// and about the whole system show its cost.
import pg from "pg";
import { startService } from "../servers/service_process.ts";
import { makeDatabase } from "../servers/databases.ts";
import { assertCommitted, callChangeFunction, makeChangeFunction } from "./change_function.ts";
import { runLoad } from "../load/sockets.ts";
import { type Bench, shared, timed, type Work } from "./work.ts";
import { settingsOf } from "./both.ts";

const limitConnections = 32; // the best of 8, 16, 32 and 64

export async function startCommit({ servers, quick }: Bench): Promise<Work> {
  const changes = quick ? 8_000 : 30_000;
  const database = await makeDatabase(servers.postgres, "entitlement", "bench_commit");
  await makeChangeFunction(database);
  const service = await startService("entitlement", {
    ...settingsOf("entitlement", servers, database, "commit"),
    ENTITLEMENT_OUTBOX_ENABLED: "false",
    ENTITLEMENT_RETENTION_ENABLED: "false",
  });
  const pool = new pg.Pool({ connectionString: database.ownerUrl, max: limitConnections });
  let made = 0;
  const checked = async <Result>(measure: (first: number) => Promise<Result>): Promise<Result> => {
    const result = await measure(made);
    made += changes;
    await assertCommitted(database, made);
    return result;
  };
  return {
    unit: "changes/s",
    atMost: { "p99 ms": 25 },
    measure: () =>
      checked(async (first) => {
        const { seconds, latenciesMs } = await runLoad(service.url, "change", {
          first,
          count: changes,
        });
        const { p50, p99 } = latenciesMs;
        return { perSecond: changes / seconds, figures: { "p50 ms": p50, "p99 ms": p99 } };
      }),
    limits: [{
      name: "one function call per commit",
      what: `through the driver, ${limitConnections} connections, no HTTP`,
      target: 1.5,
      measure: () =>
        checked((first) =>
          timed(
            changes,
            () => shared(changes, limitConnections, (i) => callChangeFunction(pool, first + i)),
          )
        ),
    }],
    [Symbol.asyncDispose]: async () => {
      await pool.end();
      await service.stop();
    },
  };
}
