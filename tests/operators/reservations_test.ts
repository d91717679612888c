// What operators see of reservations: their state, what is late and what comes next, their timelines
// and their dead letters.
import assert from "node:assert/strict";
import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import { untilSent } from "../support/notification.ts";
import { look, operate, startStack } from "../support/stack.ts";
import { ops } from "./ops.ts";
import { until } from "../../tools/servers/wait.ts";
import { cancel, grantPoints, inMs, reserve, reserveRight } from "../support/points.ts";

const own = "/debug/entitlement";
const debug = { ENTITLEMENT_DEBUG_ENABLED: "true" };
const hour = 3_600_000;

interface Step {
  step: string;
  error?: string;
  who?: string;
  reason?: string;
}

const stepsOf = ({ steps }: { steps: Step[] }) => steps.map(({ step }) => step);

async function timelineOf({ url }: Entitlement, by: string, value: string) {
  const query = new URLSearchParams({ [by]: value });
  return (await look(url, `${own}/timeline?${query}`)).events;
}

async function untilStatus(kenri: Entitlement, id: string, status: string): Promise<void> {
  await until(`it is ${status}`, async () => {
    const [row] = await kenri.rows<{ status: string }>(
      "select status from point_reservations where id = $1",
      [id],
    );
    return row?.status === status;
  });
}

Deno.test("the status shows what is due and waits, and what is to come", async () => {
  await using kenri = await startEntitlement({
    ...debug,
    ENTITLEMENT_RESERVATIONS_ENABLED: "false",
  });
  const { url } = kenri;
  const none = (await look(url, `${own}/status`)).reservations;
  assert.deepEqual(none, {
    ...{ waiting: 0, oldest_waiting_seconds: null, oldest: [], upcoming: 0, next_due_at: null },
  });
  const late = (await reserve(url)).json;
  const { json: next } = await reserve(url, { execute_at: inMs(hour) });
  await reserve(url, { execute_at: inMs(2 * hour) });
  const { reservations } = await look(url, `${own}/status`);
  assert.deepEqual(
    [reservations.waiting, reservations.upcoming, reservations.next_due_at],
    [1, 2, next.execute_at],
  );
  assert.deepEqual(
    reservations.oldest.map((
      row: Record<string, unknown>,
    ) => [row["reservation_id"], row["status"]]),
    [[late.reservation_id, "PENDING"]],
  );
  assert.ok(reservations.oldest_waiting_seconds < 60, "not since its time, which had passed");
  const upcoming = await look(url, `${own}/points/upcoming?limit=1`);
  assert.deepEqual(
    upcoming.reservations.map((row: { reservation_id: string }) => row.reservation_id),
    [next.reservation_id],
  );
  const rest = await look(url, `${own}/points/upcoming?cursor=${upcoming.next_cursor}`);
  assert.deepEqual([rest.reservations.length, rest.next_cursor], [1, undefined]);
});

Deno.test("the timeline of points leads from the reservation to their event, by any of their ids", async () => {
  await using kenri = await startEntitlement(debug);
  const { json } = await reserve(kenri.url, {}, "campaign-1");
  await untilStatus(kenri, json.reservation_id, "DONE");
  const [found] = await timelineOf(kenri, "reservation_id", json.reservation_id);
  assert.deepEqual(stepsOf(found).slice(0, 4), ["RESERVED", "DUE", "DONE", "CHANGED"]);
  assert.deepEqual(
    [found.type, found.user_id, found.stock_keeping_unit, found.version, found.idempotency_key],
    ["PointsAdded", "ann", "points:points", 1, "campaign-1"],
  );
  const withoutSteps = ({ reservation_id, event_id }: typeof found) => ({
    reservation_id,
    event_id,
  });
  for (
    const [by, value] of [
      ["event_id", found.event_id],
      ["user_id", "ann"],
      ["idempotency_key", "campaign-1"],
    ]
  ) {
    const events = await timelineOf(kenri, by ?? "", value ?? "");
    assert.deepEqual(events.map(withoutSteps), [withoutSteps(found)], by);
  }
});

Deno.test("ops follows a reservation from the request to the inbox, and shows the points of its user", async () => {
  await using stack = await startStack();
  const { entitlement, place } = stack;
  const { json } = await reserve(entitlement.url, { point_amount: 7 }, "campaign-1");
  const { json: next } = await reserve(entitlement.url, { execute_at: inMs(hour) });
  await untilSent(place, 1);
  const said = async (...args: string[]) => {
    const { code, output, errors } = await ops(stack, ...args);
    assert.deepEqual([code, errors], [0, ""], output);
    return output;
  };
  const way = /RESERVED[^]*DUE[^]*DONE[^]*CHANGED[^]*PUBLISHED[^]*RECEIVED[^]*SENT/;
  assert.match(await said("timeline", "--reservation", json.reservation_id), way);
  assert.match(await said("timeline", "--key", "campaign-1"), way);
  const ofUser = await said("timeline", "--user", "ann");
  assert.match(ofUser, new RegExp(`reserved ${next.reservation_id} .* PENDING +-$`, "m"));
  assert.match(ofUser, /points:points +1 +PointsAdded +PUBLISHED +SENT$/m);
  const points = await said("points", "--user", "ann");
  assert.match(points, /^points +7 +1 /m);
  assert.match(points, new RegExp(`${next.reservation_id} +ann +\\+10 points +PENDING`));
  assert.match(points, /\+7 points +7 +1 +reservation/);
  assert.match(await said("points", "next"), new RegExp(next.reservation_id));
  assert.match(await said("points", "late"), /Nothing is waiting/);
  assert.match(await said("points"), /reservations to come +1\n[^]*All is well/);
  assert.equal((await ops(stack, "points", "--user", "nobody")).code, 1);
});

Deno.test("a scheduled right leads to its event, or shows its refusal", async () => {
  await using kenri = await startEntitlement(debug);
  const { json: first } = await reserveRight(kenri.url);
  await untilStatus(kenri, first.reservation_id, "DONE");
  const { json: second } = await reserveRight(kenri.url);
  await untilStatus(kenri, second.reservation_id, "DONE");
  const [granted] = await timelineOf(kenri, "reservation_id", first.reservation_id);
  assert.deepEqual([granted.type, granted.version], ["EntitlementGranted", 1]);
  assert.deepEqual(stepsOf(granted).slice(0, 4), ["RESERVED", "DUE", "DONE", "CHANGED"]);
  const [refused] = await timelineOf(kenri, "reservation_id", second.reservation_id);
  assert.deepEqual([refused.event_id, refused.status], [null, "DONE"]);
  assert.equal(refused.steps.at(-1).error, "409 ENTITLEMENT_STATE_CONFLICT: already ACTIVE");
});

Deno.test("a reservation to come or cancelled has a timeline without an event", async () => {
  await using kenri = await startEntitlement(debug);
  const { url } = kenri;
  const { json: pending } = await reserve(url, { execute_at: inMs(hour) });
  const { json: cancelled } = await reserve(url, { execute_at: inMs(2 * hour) });
  const gone = await cancel(url, cancelled.reservation_id);
  assert.equal(gone.status, 200, gone.text);
  const events = await timelineOf(kenri, "user_id", "ann");
  const seen = events.map((event: { status: string; event_id: null; steps: Step[] }) => [
    event.event_id,
    event.status,
    stepsOf(event),
  ]);
  assert.deepEqual(seen, [
    [null, "PENDING", ["RESERVED", "DUE"]],
    [null, "CANCELLED", ["RESERVED", "CANCELLED"]],
  ]);
  assert.equal(events[0].next_retry_at, pending.execute_at);
});

Deno.test("what can't be carried out is a dead letter; sent back, it is carried out at once", async () => {
  await using kenri = await startEntitlement({ ...debug, ENTITLEMENT_POINTS_MAX_BALANCE: "100" });
  const { url } = kenri;
  await grantPoints(url, { point_amount: 95 });
  const { json } = await reserve(url);
  const id = json.reservation_id;
  await untilStatus(kenri, id, "FAILED");
  const { dead_letters: [dead] } = await look(url, `${own}/dead-letters?layer=reservation`);
  assert.deepEqual(
    [dead.id, dead.reservation_id, dead.event_id, dead.error, dead.attempts],
    [id, id, null, "the balance would exceed its limit", 1],
  );
  assert.deepEqual([dead.payload.user_id, dead.payload.point_amount], ["ann", 10]);
  await kenri.rows("update point_reservations set point_amount = 5 where id = $1", [id]);
  const body = { layer: "reservation", error: dead.error };
  const path = "/operations/entitlement/dead-letters/send-back";
  const { dead_letters: [sent] } = await operate(url, path, body);
  assert.equal(sent.outcome, "SENT_BACK");
  await untilStatus(kenri, id, "DONE");
  const [found] = await timelineOf(kenri, "reservation_id", id);
  assert.deepEqual(stepsOf(found).slice(0, 5), ["RESERVED", "DUE", "GAVE_UP", "SENT_BACK", "DONE"]);
  const { who, reason } = found.steps.find(({ step }: Step) => step === "SENT_BACK");
  assert.deepEqual([who, reason], ["kim", "the channel is back"]);
  const { operations: [operation] } = await look(url, `${own}/operations`);
  assert.deepEqual([operation.kind, operation.layer], ["SEND_BACK", "reservation"]);
  assert.deepEqual(operation.items, [
    { reservation_id: id, from: "FAILED", error: dead.error, attempts: 1 },
  ]);
  const again = await operate(url, path, { layer: "reservation", ids: [id] });
  assert.deepEqual([again.operation_id, again.dead_letters[0].outcome], [null, "NOT_DEAD"]);
});
