// Commands over HTTP, each of a new user and with a new key. The workers are off: the lines about the
// relay, about what is due and about the whole pipeline show their cost.
import { startService } from "../servers/service_process.ts";
import { makeDatabase } from "../servers/databases.ts";
import { type LoadKind, runLoad } from "../load/sockets.ts";
import { changeFunction, unsealedFunction } from "./change_function.ts";
import { callPerCommit, sameWork, type ServerFunction } from "./function_per_commit.ts";
import { reserveFunction } from "./reserve_function.ts";
import { withUse } from "./usage.ts";
import type { StartWork } from "./work.ts";
import { settingsOf } from "./both.ts";

interface Requests {
  kind: LoadKind;
  unit: string;
  same: ServerFunction; // the same work
  less?: ServerFunction; // less work: shown, but not required
  connections: number;
  target: number;
  p99Ms?: number;
}

const changes = {
  kind: "change",
  unit: "changes/s",
  same: changeFunction,
  less: unsealedFunction,
} as const;
const reservations = { kind: "reserve", unit: "reservations/s", same: reserveFunction } as const;

export const startCommit = commitOf({ ...changes, connections: 64, target: 1, p99Ms: 20 });
export const startCommit256 = commitOf({ ...changes, connections: 256, target: 1.5 });
export const startReserve = commitOf({ ...reservations, connections: 64, target: 1, p99Ms: 20 });

function commitOf(requests: Requests): StartWork {
  const { kind, unit, same, less, connections, target, p99Ms } = requests;
  return async ({ servers, quick }) => {
    const count = quick ? 15_000 : 50_000;
    const name = `${kind}_${connections}`;
    const database = await makeDatabase(servers.postgres, "entitlement", `bench_${name}`);
    await same.make(database);
    await less?.make(database);
    const service = await startService("entitlement", {
      ...settingsOf("entitlement", servers, database, name),
      ENTITLEMENT_OUTBOX_ENABLED: "false",
      ENTITLEMENT_RESERVATIONS_ENABLED: "false",
      ENTITLEMENT_RETENTION_ENABLED: "false",
    });
    let made = 0;
    const checked = async <Result>(work: (first: number) => Promise<Result>): Promise<Result> => {
      const result = await work(made);
      made += count;
      await same.assertDone(database, made);
      return result;
    };
    const limit = (called: ServerFunction, target: number, name = sameWork.name) => ({
      ...sameWork,
      name,
      target,
      measure: () => checked((first) => callPerCommit(database, called, { first, count })),
    });
    return {
      unit,
      atMost: p99Ms === undefined ? {} : { "p99 ms": p99Ms },
      measure: () =>
        checked(async (first) => {
          const load = () => runLoad(service.url, kind, { first, count, connections });
          const pids = { PostgreSQL: servers.postgres.pid, entitlement: service.pid };
          const { result, use } = await withUse(pids, count, load);
          const { p50, p99 } = result.latenciesMs;
          return {
            perSecond: count / result.seconds,
            figures: { "p50 ms": p50, "p99 ms": p99, ...use },
          };
        }),
      limits: [
        limit(same, target),
        ...less ? [limit(less, 0, "the same without the seal")] : [],
      ],
      [Symbol.asyncDispose]: () => service.stop().then(() => {}),
    };
  };
}
