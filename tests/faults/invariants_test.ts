// Tests the checker: it finds nothing after a quiet run, and notices each planted fault in the
// tables.
import assert from "node:assert/strict";
import { freshBoth } from "../support/places.ts";
import { type Answer, attempt } from "../../tools/load/repeating_client.ts";
import { type AnyRequest, toHttp } from "../../tools/load/any_request.ts";
import { grant } from "../../tools/load/change_request.ts";
import { sendChange } from "../support/changes.ts";
import {
  type Answered,
  assertAllHold,
  checkInvariants,
  invariantsOf,
  untilAtRest,
} from "../../tools/chaos/invariants/invariants.ts";
import { readAllTables } from "../../tools/chaos/invariants/tables.ts";
import { sendRecordsIn } from "../support/sends.ts";
import { harmsToOrders, openOutside } from "./orders_world.ts";
import { type Harm, harmsToPoints, last, reserveAndSpend, type World } from "./points_world.ts";
import { startService } from "../../tools/servers/service_process.ts";

const harms: Record<string, Harm> = {
  "an event is missing": { to: 1, does: ({ tables }) => void tables.events.pop() },
  "an event is doubled": { to: 1, does: ({ tables }) => tables.events.push(last(tables.events)) },
  "an audit row is missing": { to: 1, does: ({ tables }) => void tables.audit.pop() },
  "an audit row is of another request": {
    to: 1,
    does: ({ tables }) => last(tables.audit).request_id = "another",
  },
  "a version is left out": { to: 1, does: ({ tables }) => last(tables.audit).version++ },
  "the state is not that of the last change": {
    to: 1,
    does: ({ tables }) => last(tables.entitlements).status = "REVOKED",
  },
  "an event is forgotten": { to: 2, does: ({ tables }) => last(tables.events).status = "PENDING" },
  "an event failed without a reason": {
    to: 2,
    does: ({ tables }) => last(tables.events).status = "FAILED",
  },
  "two events claim one place": {
    to: 2,
    does: ({ tables }) => last(tables.events).place = tables.events[0]?.place ?? "",
  },
  "an event did not arrive": { to: 3, does: ({ tables }) => void tables.processed.pop() },
  "a notification is missing": { to: 3, does: ({ tables }) => void tables.notifications.pop() },
  "a notification is doubled": {
    to: 3,
    does: ({ tables }) => tables.notifications.push(last(tables.notifications)),
  },
  "a notification reports a change that was not committed": {
    to: 3,
    does: ({ tables }) => last(tables.notifications).version = 7,
  },
  "a notification is forgotten": {
    to: 4,
    does: ({ tables }) => last(tables.notifications).status = "PENDING",
  },
  "a failed notification has no dead letter": {
    to: 4,
    does: ({ tables }) => void tables.deadLetters.pop(),
  },
  "a sent notification has a dead letter": {
    to: 4,
    does: ({ tables }) =>
      tables.deadLetters.push(
        tables.notifications.find(({ status }) => status === "SENT") as never,
      ),
  },
  "a dead letter is of nothing": {
    to: 4,
    does: ({ tables }) => tables.deadLetters.push({ notification_id: "no", event_id: "no" }),
  },
  "a send is of nothing": {
    to: 4,
    does: ({ sends }) => sends.push({ notification_id: "no", event_id: "no" }),
  },
  "what is SENT was not sent": { to: 4, does: ({ sends }) => void sends.pop() },
  "an event that ended is leased": {
    to: 5,
    does: ({ tables }) => last(tables.events).leased = true,
  },
  "a notification that ended is leased": {
    to: 5,
    does: ({ tables }) => last(tables.notifications).leased = true,
  },
  "an answer is lost": { to: 6, does: ({ tables }) => void tables.answers.pop() },
  "an answer is another": { to: 6, does: ({ answered }) => changeOf(answered).answer.body += " " },
  "a refusal left an audit row": {
    to: 6,
    does: ({ tables }) => tables.audit.push({ ...last(tables.audit), request_id: "refused" }),
  },
  "a bad request left an answer": {
    to: 6,
    does: ({ tables }) => tables.answers.push({ ...last(tables.answers), idem_key: "b a d" }),
  },
  ...harmsToPoints,
  ...harmsToOrders,
};

Deno.test("the invariants hold after a quiet run, and each planted fault breaks its own invariant", async () => {
  const world = await quietWorld();
  const whole = invariantsOf(world.tables, world.answered, world.sends, world.received);
  assertAllHold(whole);
  assert.ok(whole.every(({ checked }) => checked > 0), JSON.stringify(whole, null, 2));
  for (const [what, { to, does }] of Object.entries(harms)) {
    const harmed = structuredClone(world);
    does(harmed);
    const invariants = invariantsOf(harmed.tables, harmed.answered, harmed.sends, harmed.received);
    const broken = invariants.filter(({ violations }) => violations > 0);
    assert.ok(broken.some(({ statement }) => statement.startsWith(`${to}.`)), what);
    assert.throws(() => assertAllHold(invariants), what);
  }
});

/**
 * Points, some changes, one repeated and two refused requests, and a notification that fails. An
 * endpoint gets all events, and there is a plain order.
 */
async function quietWorld(): Promise<World> {
  await using place = await freshBoth();
  await using outside = await openOutside();
  const settings = {
    ...place.settings,
    ...outside.settings,
    NOTIFICATION_DELIVERY_MAX_ATTEMPTS: "1",
    NOTIFICATION_DELIVERY_FAILURE_INJECTION_ENABLED: "true",
    NOTIFICATION_DELIVERY_FAILURE_INJECTION_USER_ID_PREFIX: "fail",
  };
  await using notification = await startService("notification", settings);
  await using entitlement = await startService("entitlement", settings);
  await outside.register(notification);
  const answered: Answered[] = [];
  const ask = async (request: AnyRequest, { url } = entitlement) => {
    const { answer } = await attempt(url, toHttp(request));
    answered.push({ request, answer: answer as Answer });
    return answer as Answer;
  };
  await reserveAndSpend(ask, () => untilAtRest(place.owners));
  for (
    const request of [
      grant({ key: "fails", user: "fails" }),
      grant({ key: "granted" }),
      grant({ key: "granted" }),
      grant({ key: "granted", sku: "another" }),
      grant({ key: "refused" }),
      { ...grant({ key: "revoked" }), action: "REVOKE" as const },
      grant({ key: "b a d", user: "" }),
      grant({ key: "again" }),
    ]
  ) {
    const { answer } = await sendChange(entitlement.url, request);
    answered.push({ request, answer: answer as Answer });
  }
  assert.deepEqual(
    answered.slice(-8).map(({ answer }) => answer.status),
    [200, 200, 200, 409, 409, 200, 400, 200],
  );
  const order = { action: "ORDER", key: "order", user: "user", reason: "r" } as const;
  assert.equal((await ask({ ...order, url: outside.url }, notification)).status, 202);
  await untilAtRest(place.owners);
  const evidence = {
    ...{ owners: place.owners, answered, sends: sendRecordsIn(notification.log) },
    received: outside.received(),
  };
  assertAllHold(await checkInvariants(evidence));
  const tables = await readAllTables(place.owners.entitlement, place.owners.notification);
  return { ...evidence, tables };
}

function changeOf(answered: Answered[]): Answered {
  return answered.find(({ answer }) => answer.status === 200) as Answered;
}
