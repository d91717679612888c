// Crashes on the way from a reservation to its points, and of the requests beside it.
import { reservations } from "../../../entitlement/points/reservations.ts";
import type { AnyRequest, ReserveRequest } from "../../../tools/load/any_request.ts";
import type { FlowService } from "../../../tools/load/stage.ts";
import { ask } from "../../support/entitlement.ts";
import { type FaultPoint, statement } from "./fault_point.ts";
import { leasedPoints } from "./leased_points.ts";
import { tableLeases } from "./table_leases.ts";
import type { FlowPoint, Stage } from "./stage.ts";

const named = { key: "key", user: "user", reason: "r", purchase: "p" };
const points = { unit: "points", amount: 5 };
const hourMs = 3_600_000;

const due = (parts: Partial<ReserveRequest> = {}): ReserveRequest => ({
  ...{ action: "RESERVE", ...named, what: points, at: Date.now(), ...parts },
});
const ofRight: ReserveRequest["what"] = { change: "GRANT", sku: "sku" };
const added: AnyRequest = { action: "POINTS_ADD", ...named, ...points };

const accepted = { "stored answers": 1 };
const changed = {
  ...{ ...accepted, audit: 1, "outbox PUBLISHED": 1, "in the stream": 1 },
  ...{ processed: 1, "notifications SENT": 1 },
};
const granted = { ...changed, transactions: 1, "reservations DONE": 1 };
const claimed = { ...accepted, "reservations PROCESSING": 1 };
const rolledBack = "PostgreSQL has rolled the transaction back";
const again = "No answer; the request is carried out when it is repeated with its key";
const once = "The reservation was accepted before; one notification, sent once";

const withholds = "update outbox_events"; // a claim of the relay

/** Within the one commit that carries a reservation out. */
const within: [dies: string, at: FaultPoint][] = [
  ["with the lock of the balance", statement("after", "pg_advisory_xact_lock")],
  ["when the reservation is found leased", statement("after", "(id, claim_token) in")],
  ["after the event", statement("after", "insert into outbox_events")],
  ["after the transaction", statement("after", "append_points")],
  ["after DONE", statement("after", "set status = 'DONE'")],
  ["before its end", statement("before", "commit")],
];

export const reservationPoints: FlowPoint[] = [
  {
    dies: "before the commit of a reservation",
    of: "entitlement",
    at: statement("before", "commit"),
    meanwhile: (stage, { url }) => stage.askInVain(url, due()),
    leaves: {},
    next: rolledBack,
    ends: granted,
    sends: 1,
    replays: false,
    seen: again,
  },
  {
    dies: "after the commit of a reservation, before the answer",
    of: "entitlement",
    at: statement("after", "commit"),
    ownSettings: { ENTITLEMENT_RESERVATIONS_ENABLED: "false" },
    meanwhile: (stage, { url }) => stage.askInVain(url, due()),
    leaves: { ...accepted, "reservations PENDING": 1 },
    next: "A worker finds the reservation, which is due",
    ends: granted,
    sends: 1,
    replays: true,
    seen: "No answer; the repeated request gets the stored one, with Idempotency-Replayed",
  },
  {
    dies: "before the commit of a cancel",
    of: "entitlement",
    at: statement("before", "commit"),
    meanwhile: cancelInVain,
    leaves: { ...accepted, "reservations PENDING": 1 },
    next: rolledBack,
    ends: { ...accepted, "reservations CANCELLED": 1 },
    sends: 0,
    replays: false,
    seen: "No answer; the repeated request cancels the reservation, unless it is due by then",
  },
  {
    dies: "after the commit of a cancel, before the answer",
    of: "entitlement",
    at: statement("after", "commit"),
    meanwhile: cancelInVain,
    leaves: { ...accepted, "reservations CANCELLED": 1 },
    next: "Nothing",
    ends: { ...accepted, "reservations CANCELLED": 1 },
    sends: 0,
    replays: false,
    seen:
      "No answer; the repeated request finds the reservation CANCELLED and gets the same answer",
  },
  {
    dies: "before the commit of a grant of points",
    of: "entitlement",
    at: statement("before", "commit"),
    meanwhile: (stage, { url }) => stage.askInVain(url, added),
    leaves: {},
    next: rolledBack,
    ends: { ...changed, transactions: 1 },
    sends: 1,
    replays: false,
    seen: again,
  },
  {
    dies: "after the commit of a grant of points, before the answer",
    of: "entitlement",
    at: statement("after", "commit"),
    ownSettings: { ENTITLEMENT_OUTBOX_ENABLED: "false" },
    meanwhile: (stage, { url }) => stage.askInVain(url, added),
    leaves: { ...accepted, audit: 1, transactions: 1, "outbox PENDING": 1 },
    next: "A relay finds the event, which is due",
    ends: { ...changed, transactions: 1 },
    sends: 1,
    replays: true,
    seen: "No answer; the repeated request gets the stored one, with Idempotency-Replayed",
  },
  ...leasedPoints<FlowService, Stage>({
    of: "entitlement",
    leases: tableLeases({ of: "entitlement", table: reservations, withholds }),
    maxAttempts: "ENTITLEMENT_RESERVATIONS_MAX_ATTEMPTS",
    words: {
      ...{ row: "reservation", rows: "reservations", attempts: "reservation attempts" },
      ...{ work: "grant", worked: "granted" },
    },
    add: (stage) => stage.reserve(due()),
    isOneCommit: true,
    before: accepted,
    adds: {},
    finished: { ends: granted, sends: 1, seen: once },
    again: { next: `${rolledBack}; the lease expires, and the reservation is claimed again` },
    settled: {
      next: "The event is in the outbox; the relay claims it",
      counts: { audit: 1, transactions: 1, "outbox PENDING": 1 },
    },
    gaveUp: { sends: 0, seen: "No points; the reservation is FAILED, and the log says so" },
    fails: { begin: refuseTransactions, end: acceptTransactions },
  }),
  ...within.map(([dies, at]): FlowPoint => ({
    dies: `in the commit of the grant, ${dies}`,
    of: "entitlement",
    at: { ...at, withholds },
    before: (stage) => stage.reserve(due()),
    leaves: claimed,
    next: `${rolledBack}; the lease expires, and the reservation is claimed again`,
    ends: { ...granted, "reservation attempts": 1 },
    sends: 1,
    seen: once,
  })),
  {
    dies: "in the commit of a scheduled right, before its end",
    of: "entitlement",
    at: { ...statement("before", "commit"), withholds },
    before: (stage) => stage.reserve(due({ what: ofRight })),
    leaves: claimed,
    next: `${rolledBack}; the lease expires, and the reservation is claimed again`,
    ends: { ...changed, "reservations DONE": 1, "reservation attempts": 1 },
    sends: 1,
    seen: once,
  },
  {
    dies: "after the commit of a scheduled right",
    of: "entitlement",
    at: { ...statement("after", "commit"), withholds },
    before: (stage) => stage.reserve(due({ what: ofRight })),
    leaves: { ...accepted, audit: 1, "reservations DONE": 1, "outbox PENDING": 1 },
    next: "The event is in the outbox; the relay claims it",
    ends: { ...changed, "reservations DONE": 1 },
    sends: 1,
    seen: once,
  },
];

async function cancelInVain(stage: Stage, { url }: { url: string }): Promise<void> {
  const reservation = await stage.reserve(due({ at: Date.now() + hourMs }));
  const request = { action: "CANCEL", key: "cancel", user: "user", reservation } as const;
  await stage.askInVain(url, { ...request, isOfRight: false });
}

async function refuseTransactions({ owners }: Stage): Promise<void> {
  await ask(
    owners.entitlement,
    "alter table point_transactions add constraint broken check (false) not valid",
  );
}

async function acceptTransactions({ owners }: Stage): Promise<void> {
  await ask(owners.entitlement, "alter table point_transactions drop constraint broken");
}
