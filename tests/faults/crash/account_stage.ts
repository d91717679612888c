// The account service, and a client that repeats what was not answered.
import assert from "node:assert/strict";
import { findOrRegister } from "../../../account/resolve_identity.ts";
import { openDatabase } from "../../../shared/postgres/postgres.ts";
import { accountInvariantsOf } from "../../../tools/chaos/invariants/account_invariants.ts";
import { readAccountTables } from "../../../tools/chaos/invariants/account_tables.ts";
import { assertAllHold } from "../../../tools/chaos/invariants/invariants.ts";
import type { HttpRequest } from "../../../tools/load/http_request.ts";
import { attempt } from "../../../tools/load/repeating_client.ts";
import { startService } from "../../../tools/servers/service_process.ts";
import { runArguments } from "../../../tools/services.ts";
import { freshDatabase } from "../../support/databases.ts";
import { freshStreamNames, natsUrl } from "../../support/streams.ts";
import { observe } from "./observer.ts";
import type { CrashPoint, System } from "./point.ts";

type Service = "account";
export type AccountPoint = CrashPoint<Service, AccountStage>;

export interface AccountStage extends System<Service> {
  stream: string;
  /** Registers a user, as a replica does that publishes nothing. */
  register(): Promise<void>;
  /** The client gets no answer, and repeats the request at the next process. */
  askInVain(url: string, request: (userId: string) => HttpRequest): Promise<void>;
  ask(url: string, request: (userId: string) => HttpRequest): Promise<void>;
}

const identity = { provider: "https://issuer.example", subject: "ann" };

export const login = (): HttpRequest => json("POST", "/v1/identities:resolve", identity);

export function json(method: string, path: string, body: unknown): HttpRequest {
  return {
    path,
    init: {
      method,
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    },
  };
}

const counts = `
  select 'users' as what, count(*)::int from users
  union all
  select 'identities', count(*)::int from identities
  union all
  select 'roles', count(*)::int from account_roles
  union all
  select 'audit', count(*)::int from audit_logs
  union all
  select 'ended sessions', count(*)::int from ended_sessions
  union all
  select 'events ' || status, count(*)::int from outbox_events group by status
  union all
  select 'event attempts', coalesce(sum(attempt_count), 0)::int from outbox_events`;

export async function openAccounts(): Promise<AccountStage> {
  await using opened = new AsyncDisposableStack();
  const { ownerUrl, serviceUrl } = opened.use(await freshDatabase("account"));
  const { stream, subject } = freshStreamNames();
  const databases = { account: { ownerUrl, counts } };
  const observer = opened.use(await observe({ databases, natsUrl, stream }));
  const closing = opened.move();
  const register = () => registerIn(serviceUrl);
  let unanswered: HttpRequest | undefined;
  const ask = async (url: string, request: HttpRequest) => {
    const { answer, problem } = await attempt(url, request);
    assert.ok(answer && answer.status < 300, answer?.body ?? problem);
  };
  return {
    settings: {
      ACCOUNT_DATABASE_URL: serviceUrl,
      ACCOUNT_NATS_STREAM: stream,
      ACCOUNT_NATS_SUBJECT: subject,
      ACCOUNT_OUTBOX_POLL_INTERVAL: "50ms",
      NATS_URL: natsUrl,
    },
    shortLeases: { ACCOUNT_OUTBOX_LEASE: "1s" },
    owners: { account: ownerUrl },
    observer,
    stream,
    register: async () => void await register(),
    ask: async (url, request) => await ask(url, request(await register())),
    askInVain: async (url, request) => {
      unanswered = request === login ? login() : request(await register());
      assert.equal((await attempt(url, unanswered)).answer, undefined);
    },
    start,
    goOn: async (_, settings) => {
      const service = await start("account", settings);
      if (unanswered) await ask(service.url, unanswered);
      return service;
    },
    assertHolds: async () => {
      assertAllHold(accountInvariantsOf(await readAccountTables({ ownerUrl, natsUrl, stream })));
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

const start: System<Service>["start"] = (service, settings, change = (args) => args) =>
  startService(service, settings, {
    arguments: (name, read) => change(runArguments(name, read)),
  });

async function registerIn(serviceUrl: string): Promise<string> {
  const database = openDatabase(serviceUrl, "replica");
  const unknown = { email: null, email_verified: null, name: null, picture: null };
  try {
    const { user_id } = await findOrRegister(database, { ...identity, ...unknown }, "tests", {
      traceId: "t",
      traceparent: null,
    });
    return user_id;
  } finally {
    await database.end();
  }
}
