// The account service with a database and stream names of its own, and access to its tables.
import { ask } from "../../tools/servers/asking.ts";
import {
  type ServiceProcess,
  type Settings,
  startService,
} from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { type Answer, call } from "./api.ts";
import { freshDatabase, type TestDatabase } from "./databases.ts";
import { freshStreamNames, natsUrl, type StreamNames } from "./streams.ts";

export interface Account extends StreamNames, AsyncDisposable {
  [Symbol.asyncDispose](): Promise<void>;
  url: string;
  service: ServiceProcess;
  database: TestDatabase;
  settings: Settings; // to start a replica
  rows<Row>(sql: string, values?: unknown[]): Promise<Row[]>; // as the owner
  close(): Promise<void>;
}

export async function startAccount(
  more: Settings = {},
  names: StreamNames = freshStreamNames(),
): Promise<Account> {
  const database = await freshDatabase("account");
  const settings = {
    ACCOUNT_DATABASE_URL: database.serviceUrl,
    ACCOUNT_NATS_STREAM: names.stream,
    ACCOUNT_NATS_SUBJECT: names.subject,
    ACCOUNT_OUTBOX_POLL_INTERVAL: "100ms",
    NATS_URL: natsUrl,
    ...more,
  };
  const service = await startReplica({ settings });
  const close = async () => {
    await service.kill();
    await database.drop();
  };
  return {
    ...names,
    url: service.url,
    service,
    database,
    settings,
    rows: (sql, values) => ask(database.ownerUrl, sql, values),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Waits until the service says no more of itself, so that a test ends with nothing under way. */
export async function startReplica(
  { settings }: Pick<Account, "settings">,
): Promise<ServiceProcess> {
  const service = await startService("account", settings);
  await until(
    "it relays",
    () => service.log.some(({ message }) => / has one replica/.test(message)),
  );
  return service;
}

export async function untilPublished(ownerUrl: string): Promise<void> {
  await until("all events are published", async () => {
    const left = await ask(ownerUrl, "select from outbox_events where status <> 'PUBLISHED'");
    return left.length === 0;
  });
}

export interface Resolved {
  user_id: string;
  account_status: string;
  roles: string[];
  session_epoch: number;
  is_new: boolean;
}

export async function resolve(
  { url }: { url: string },
  identity: Record<string, unknown>,
  headers: Record<string, string> = {},
): Promise<Resolved> {
  const { status, json, text } = await post(`${url}/v1/identities:resolve`, identity, headers);
  if (status !== 200) throw new Error(`It answers ${status}: ${text}`);
  return json;
}

export function post(
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return send("POST", url, body, headers);
}

export function send(
  method: string,
  url: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  if (body === undefined) return call(url, { method, headers });
  return call(url, {
    method,
    headers: { "Content-Type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}
