// Crashes on the way of a login or a change of an account to the stream.
import { outbox } from "../../../account/outbox.ts";
import type { HttpRequest } from "../../../tools/load/http_request.ts";
import { ask } from "../../../tools/servers/asking.ts";
import { untilPublished } from "../../support/account.ts";
import { natsUrl, refuseMessagesIn } from "../../support/streams.ts";
import { type AccountPoint, type AccountStage, json, login } from "./account_stage.ts";
import { type FaultPoint, statement } from "./fault_point.ts";
import { killInFrontOf } from "./kill_in_front_of.ts";
import { leasedPoints } from "./leased_points.ts";
import { tableLeases } from "./table_leases.ts";
import type { Counts } from "./observer.ts";

const of = "account" as const;
const noRelay = { ACCOUNT_OUTBOX_ENABLED: "false" };

const registered = { users: 1, identities: 1, roles: 1, audit: 1 };
const published = { ...registered, "events PUBLISHED": 1, "in the stream": 1 };
const rolledBack = "PostgreSQL has rolled the transaction back";
const finds = "A relay finds the event, which is due";

type Request = (userId: string) => HttpRequest;

const session = "0197f7a0-5f0c-7c3e-9b1d-2f4f3c1a9e57";
const suspend: Request = (id) => json("POST", `/v1/users/${id}:suspend`, { reason: "spam" });
const end: Request = (id) =>
  json("POST", `/v1/sessions/${session}:end`, {
    user_id: id,
    expires_at: new Date(Date.now() + 3_600_000).toISOString(),
  });
const endAll: Request = (id) => ({
  path: `/v1/users/${id}/sessions:end`,
  init: { method: "POST", headers: {} },
});
const rename: Request = (id) => json("PATCH", `/v1/users/${id}`, { display_name: "Ann" });
const promote: Request = (id) => json("PUT", `/v1/users/${id}/roles`, { roles: ["USER", "ADMIN"] });

/** Each change, and what it leaves besides an audit row and an event. */
const changes: { name: string; request: Request; adds?: Counts; again?: string }[] = [
  { name: "a suspension", request: suspend },
  { name: "a change of the profile", request: rename },
  { name: "a change of roles", request: promote, adds: { roles: 2 } },
  { name: "the end of a session", request: end, adds: { "ended sessions": 1 } },
  {
    ...{ name: "the end of all sessions", request: endAll },
    again: "No answer; the repeated request ends them once more, which is a change of its own",
  },
];

/** Within the one commit of a change. */
const within: [change: string, request: Request, dies: string, at: FaultPoint][] = [
  ["a suspension", suspend, "with its locks", statement("after", "pg_advisory_xact_lock")],
  ["a suspension", suspend, "after the event", statement("after", "insert into outbox_events")],
  ["a suspension", suspend, "after the status", statement("after", "update users")],
  ["a suspension", suspend, "after the audit", statement("after", "insert into audit_logs")],
  ["a change of roles", promote, "after the roles", statement("after", "into account_roles")],
  ["the end of a session", end, "after its row", statement("after", "into ended_sessions")],
];

const many = "from generate_series(1, 1100)";
const retention: [rows: string, at: FaultPoint, insert: string, leaves: Counts][] = [
  [
    "events",
    statement("before", "delete from outbox_events", 2),
    `insert into outbox_events
       (event_id, event_type, aggregate_key, payload, status, created_at, published_at)
     select gen_random_uuid(), 'UserUpdated', 'old', '{}', 'PUBLISHED',
       now() - interval '2 days', now() - interval '2 days' ${many}`,
    { "events PUBLISHED": 100 },
  ],
  [
    "ended sessions",
    statement("before", "delete from ended_sessions", 2),
    `insert into ended_sessions (session_id, user_id, ended_at, expires_at)
     select gen_random_uuid(), gen_random_uuid(), now() - interval '2 days',
       now() - interval '1 hour' ${many}`,
    { "ended sessions": 100 },
  ],
  [
    "audit rows",
    statement("before", "delete_old_audit", 2),
    `insert into audit_logs (audit_id, occurred_at, user_id, action, actor, version, trace_id)
     select gen_random_uuid(), now() - interval '500 days', gen_random_uuid(), 'UPDATE', 'a', 2, 't'
     ${many}`,
    { audit: 101 },
  ],
];

export const accountPoints: AccountPoint[] = [
  ...Object.entries({
    user: "users",
    role: "account_roles",
    "audit row": "audit_logs",
    event: "outbox_events",
  }).map(([row, table]): AccountPoint => ({
    dies: `in the statement of a first login, before the ${row}`,
    of,
    meanwhile: (stage, service) =>
      killInFrontOf(
        { table, statement: "insert into identities" },
        stage.owners.account,
        of,
        service,
        () => stage.askInVain(service.url, login),
      ),
    leaves: {},
    next: "PostgreSQL has rolled the statement back",
    ends: published,
    seen: "No answer; the repeated login registers the user",
  })),
  {
    dies: "after the commit of a first login, before the answer",
    of,
    at: statement("after", "insert into identities"),
    ownSettings: noRelay,
    meanwhile: (stage, { url }) => stage.askInVain(url, login),
    leaves: { ...registered, "events PENDING": 1 },
    next: finds,
    ends: published,
    seen: "No answer; the repeated login finds the same user, who is not new",
  },
  ...within.map(([change, request, dies, at]): AccountPoint => ({
    dies: `in the commit of ${change}, ${dies}`,
    ...inVain(request),
    at,
    leaves: { ...registered, "events PENDING": 1 },
    next: rolledBack,
    ends: changed(changes.find((one) => one.request === request)?.adds),
    seen: "No answer; the request is carried out when it is repeated",
  })),
  ...changes.flatMap(({ name, request, adds, again }): AccountPoint[] => [
    {
      dies: `before the commit of ${name}`,
      ...inVain(request),
      at: statement("before", "commit"),
      leaves: { ...registered, "events PENDING": 1 },
      next: rolledBack,
      ends: changed(adds),
      seen: "No answer; the request is carried out when it is repeated",
    },
    {
      dies: `after the commit of ${name}, before the answer`,
      ...inVain(request),
      at: statement("after", "commit"),
      leaves: { ...registered, audit: 2, "events PENDING": 2, ...adds },
      next: finds,
      ends: again ? eventsOf(3) : changed(adds),
      seen: again ?? "No answer; the repeated request changes nothing",
    },
  ]),
  {
    dies: "after the commit of a suspension, before the event is handed over to the relay",
    of,
    at: statement("after", "commit", 2),
    // Rows are handed over only to a relay that keeps up. The change before shows that it does.
    meanwhile: async (stage, { url }) => {
      await stage.ask(url, rename);
      await untilPublished(stage.owners.account);
      await stage.askInVain(url, suspend);
    },
    leaves: {
      ...{ ...registered, audit: 3, "in the stream": 2 },
      ...{ "events PUBLISHED": 2, "events IN_FLIGHT": 1 },
    },
    next:
      "The event was committed with a lease; the lease expires, and a relay claims the event. " +
      "Until then no watermark is published, so gateways ask for each session",
    ends: { ...eventsOf(3), "event attempts": 1 },
    seen: "No answer; the suspension holds within the bound of docs/accounts.md",
  },
  ...leasedPoints<typeof of, AccountStage>({
    of,
    leases: tableLeases({ of, table: outbox }),
    maxAttempts: "ACCOUNT_OUTBOX_MAX_ATTEMPTS",
    words: {
      ...{ row: "event", rows: "events", attempts: "event attempts" },
      ...{ work: "publish", worked: "published" },
    },
    add: (stage) => stage.register(),
    before: registered,
    adds: { "in the stream": 1 },
    finished: { ends: published, seen: "The login was answered before" },
    again: {
      next: "It is published again with the same Nats-Msg-Id; the stream drops and acknowledges it",
    },
    settled: { next: "Nothing" },
    gaveUp: {
      seen: "The login was answered; gateways ask for each session until the event is sent back",
    },
    fails: { begin: ({ stream }) => refuseMessagesIn(natsUrl, stream) },
  }),
  {
    dies: "after publishing an event, before the PubAck",
    of,
    at: { when: "after", what: "publish", part: ".events" },
    before: (stage) => stage.register(),
    leaves: { ...registered, "events IN_FLIGHT": 1, "in the stream": 1 },
    next: "It is published again with the same Nats-Msg-Id; the stream drops and acknowledges it",
    ends: { ...published, "event attempts": 1 },
    seen: "The login was answered before",
  },
  ...retention.map(([rows, at, insert, leaves]): AccountPoint => ({
    dies: `when half of the old ${rows} are deleted`,
    of,
    at,
    ownSettings: noRelay,
    before: async ({ register, owners }) => {
      await register();
      await ask(owners.account, insert);
    },
    leaves: { ...registered, "events PENDING": 1, ...leaves },
    next: "Retention deletes the other rows after the next start",
    ends: published,
    seen: "Nothing",
  })),
];

/** A client asks for the change of a user whose registration is not published yet. */
function inVain(request: Request): Pick<AccountPoint, "of" | "ownSettings" | "meanwhile"> {
  return {
    of,
    ownSettings: noRelay,
    meanwhile: (stage, { url }) => stage.askInVain(url, request),
  };
}

function eventsOf(count: number, adds?: Counts): Counts {
  return {
    ...{ ...registered, audit: count, "events PUBLISHED": count, "in the stream": count },
    ...adds,
  };
}

function changed(adds?: Counts): Counts {
  return eventsOf(2, adds);
}
