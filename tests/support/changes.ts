// A client of the entitlement service: sends changes, and remembers when and what was answered.
import { withClient } from "./databases.ts";
import {
  type ServiceProcess,
  type Settings,
  startService,
} from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";

export interface ChangeRequest {
  key: string;
  action: "GRANT" | "REVOKE";
  user: string;
  sku: string;
  reason: string;
  purchase: string;
}

export function grant(parts: Partial<ChangeRequest> = {}): ChangeRequest {
  const action = "GRANT";
  return { key: "key", action, user: "user", sku: "sku", reason: "r", purchase: "p", ...parts };
}

export interface Answer {
  status: number;
  body: string;
  replayed: boolean;
}

/** One request as its client saw it. Without an answer the client can't know what became of it. */
export interface Observation {
  request: ChangeRequest;
  traceId: string;
  sentAt: number;
  answer: Answer | undefined;
  answeredAt: number;
}

export async function sendChange(
  url: string,
  request: ChangeRequest,
  traceId: string = crypto.randomUUID(),
): Promise<Observation> {
  const sentAt = performance.now();
  const answer = await post(url, request, traceId).catch(() => undefined);
  return { request, traceId, sentAt, answer, answeredAt: performance.now() };
}

async function post(url: string, request: ChangeRequest, traceId: string): Promise<Answer> {
  const response = await fetch(toHttp(url, request, traceId));
  return {
    status: response.status,
    body: await response.text(),
    replayed: response.headers.get("Idempotency-Replayed") === "true",
  };
}

export function toHttp(url: string, request: ChangeRequest, traceId: string): Request {
  const action = { GRANT: "grants", REVOKE: "revokes" }[request.action];
  return new Request(`${url}/v1/entitlements/${action}`, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      "Idempotency-Key": request.key,
      "X-Trace-Id": traceId,
    },
    body: JSON.stringify({
      user_id: request.user,
      stock_keeping_unit: request.sku,
      reason: request.reason,
      purchase_id: request.purchase,
    }),
  });
}

/** As a careful client does it: the same key again until the service could say what became of it. */
export async function sendUntilAnswered(
  urls: string[],
  request: ChangeRequest,
): Promise<Observation[]> {
  const attempts: Observation[] = [];
  const traceId = crypto.randomUUID();
  for (let i = 0; i < 500; i++) {
    const attempt = await sendChange(urls[i % urls.length] as string, request, traceId);
    attempts.push(attempt);
    if (attempt.answer && attempt.answer.status !== 503) return attempts;
    await new Promise((again) => setTimeout(again, 50));
  }
  throw new Error(`No answer after ${attempts.length} attempts to ${JSON.stringify(request)}`);
}

export interface Replicas extends AsyncDisposable {
  urls: string[];
  processes: ServiceProcess[];
  stop(): Promise<void>;
}

/** Replicas of the service on one database, without the relay: a change is all they do. */
export async function startReplicas(
  count: number,
  databaseUrl: string,
  settings: Settings = {},
): Promise<Replicas> {
  const starting = Array.from({ length: count }, () =>
    startService("entitlement", {
      ENTITLEMENT_DATABASE_URL: databaseUrl,
      ENTITLEMENT_NATS_STREAM: "unused",
      ENTITLEMENT_NATS_SUBJECT: "unused.events",
      ENTITLEMENT_OUTBOX_ENABLED: "false",
      ENTITLEMENT_RETENTION_ENABLED: "false",
      NATS_URL: "nats://127.0.0.1:1",
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

/** What PostgreSQL counted in this database. A session's figures are complete when it has ended. */
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
