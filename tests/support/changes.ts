// Changes over HTTP with what their clients saw, and replicas that serve only changes.
import { type ChangeRequest, toHttp } from "../../tools/load/change_request.ts";
import { type Attempt, attempt, type RepeatingClient } from "../../tools/load/repeating_client.ts";
import { requiredSettings } from "../../tools/load/stage.ts";
import { withClient } from "./databases.ts";
import {
  type ServiceProcess,
  type Settings,
  startService,
} from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";

/** One request as its client saw it. */
export interface Observation extends Attempt {
  request: ChangeRequest;
  traceId: string;
}

export async function sendChange(
  url: string,
  request: ChangeRequest,
  traceId: string = crypto.randomUUID(),
): Promise<Observation> {
  const one = await attempt(url, toHttp(request, { "X-Trace-Id": traceId }));
  return { ...one, request, traceId };
}

/** Repeats the request under its key until it is answered. */
export async function sendUntilAnswered(
  client: RepeatingClient,
  request: ChangeRequest,
): Promise<Observation[]> {
  const traceId = crypto.randomUUID();
  const attempts = await client.ask(toHttp(request, { "X-Trace-Id": traceId }));
  return attempts.map((one) => ({ ...one, request, traceId }));
}

export interface Replicas extends AsyncDisposable {
  urls: string[];
  processes: ServiceProcess[];
  stop(): Promise<void>;
}

const noBroker = { natsUrl: "nats://127.0.0.1:1", stream: "unused", subject: "unused.events" };

/** Replicas of the service on one database, without relay and retention. */
export async function startReplicas(
  count: number,
  databaseUrl: string,
  settings: Settings = {},
): Promise<Replicas> {
  const starting = Array.from({ length: count }, () =>
    startService("entitlement", {
      ...requiredSettings("entitlement", { ...noBroker, serviceUrl: databaseUrl }),
      ENTITLEMENT_OUTBOX_ENABLED: "false",
      ENTITLEMENT_RETENTION_ENABLED: "false",
      ...settings,
    }));
  const processes = await Promise.all(starting);
  const stop = async () => void await Promise.all(processes.map((process) => process.stop()));
  return {
    urls: processes.map(({ url }) => url),
    processes,
    stop,
    [Symbol.asyncDispose]: async () => {
      await Promise.all(processes.map((process) => process.kill()));
    },
  };
}

export interface Transactions {
  rolledBack: number;
  deadlocks: number;
}

/** PostgreSQL's counters of this database. A session's figures are complete when it has ended. */
export async function transactionsIn(ownerUrl: string): Promise<Transactions> {
  return await withClient(ownerUrl, async (owner) => {
    await until("all other sessions have ended", async () => {
      const { rowCount } = await owner.query(
        `select from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid()`,
      );
      return rowCount === 0;
    });
    const { rows: [found] } = await owner.query<Transactions>(
      `select xact_rollback::int as "rolledBack", deadlocks::int as deadlocks
       from pg_stat_database
       where datname = current_database()`,
    );
    return found as Transactions;
  });
}
