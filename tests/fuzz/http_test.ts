// Every request to a described route is answered as its description says, and never with a 5xx. The
// requests are generated from /openapi.json, so that a new route is tested without a change here.
import assert from "node:assert/strict";
import fc from "fast-check";
import { call } from "../support/api.ts";
import { act, make } from "../support/endpoints.ts";
import { startEntitlement } from "../support/entitlement.ts";
import { eventsOf } from "../support/events.ts";
import { freshPlace, publishTo, startNotification, untilSent } from "../support/notification.ts";
import { orderSettings, senderToken, startOrders, untilAllAre } from "../support/orders.ts";
import { assertSums, grantPoints, inMs, reserve } from "../support/points.ts";
import { type LogLine, startService } from "../../tools/servers/service_process.ts";
import { inTime } from "../../tools/servers/wait.ts";
import { askAnything, credentials } from "./ask_anything.ts";
import { anyNumber, fuzz } from "./fuzz.ts";

// Enough requests reserve the highest amounts for the same user.
const isOverLimit = ({ message }: LogLine) =>
  /^reservations gave up on [\w-]+: the balance would exceed its limit$/.test(message);

function assertCalm(log: LogLine[]): void {
  const errors = log.filter(({ level }) => level === "error" || level === "fatal");
  assert.deepEqual(errors.filter((line) => !isOverLimit(line)), []);
}

// Both run together, because a reconciliation asks the other service.
Deno.test("any request is answered as the API describes, and only answered changes are stored", async () => {
  await using kenri = await startEntitlement({
    ...credentials,
    ENTITLEMENT_DEBUG_ENABLED: "true",
  });
  const { stream, subject } = kenri;
  await using place = await freshPlace({ stream, subject });
  await using sender = await startService("sender", { SENDER_TOKEN: senderToken });
  await using service = await startNotification(place, {
    ...credentials,
    ...orderSettings(sender),
    NOTIFICATION_ORDERS_ENABLED: "false", // nothing may leave for urls that are made up
  });
  const stored = new Set<string>();
  await askAnything(kenri.url, {
    runs: 240,
    look: ({ route, headers }, { status, json }) => {
      const key = new Headers(headers).get("Idempotency-Key");
      const isStored = status < 300 || status === 409 && json.code !== "IDEMPOTENCY_KEY_CONFLICT";
      if (route.startsWith("post /v1/") && key && isStored) stored.add(key);
    },
  });
  assert.equal((await kenri.counts()).idempotency_keys, stored.size);
  await assertSums(kenri.database.ownerUrl);
  await askAnything(service.url, { runs: 100 });
  assertCalm(kenri.service.log);
  assertCalm(service.log);
  assertCalm(sender.log);
});

const debug = { NOTIFICATION_DEBUG_ENABLED: "true" };

Deno.test("any cursor of an inbox gives a page, or is refused as unknown", async () => {
  await using place = await freshPlace();
  await using service = await startNotification(place, debug);
  await publishTo(place, eventsOf({ users: 1, versions: 30 }).map(forAnn));
  await untilSent(place, 30);
  await walkFromAnyCursor(`${service.url}/debug/notification/inbox/ann?limit=10`);
  assertCalm(service.log);
});

const forAnn = <Event>(event: Event) => ({ ...event, userId: "ann" });

Deno.test("any cursor of a list of points gives a page, or is refused as unknown", async () => {
  await using kenri = await startEntitlement();
  const { url } = kenri;
  for (let i = 0; i < 15; i++) {
    await grantPoints(url);
    await reserve(url, { execute_at: inMs(3_600_000) });
  }
  for (const list of ["reservations?", "transactions?", "transactions?unit=points&"]) {
    await walkFromAnyCursor(`${url}/v1/users/ann/points/${list}limit=10`);
  }
  assertCalm(kenri.service.log);
});

Deno.test("any cursor of a list of endpoints gives a page, or is refused as unknown", async () => {
  await using stage = await startOrders();
  for (let i = 0; i < 15; i++) await make(stage);
  await walkFromAnyCursor(`${stage.url}/v1/endpoints?limit=10`);
  const { endpoint_id } = await make(stage);
  for (let i = 0; i < 15; i++) await act(stage, endpoint_id, "test");
  await untilAllAre(stage, ["SUCCEEDED"]);
  await walkFromAnyCursor(`${stage.url}/v1/endpoints/${endpoint_id}/attempts?limit=10`);
  assertCalm(stage.service.log);
});

/** Cursors of the list with small changes: they lead to another page or are invalid. */
async function walkFromAnyCursor(list: string): Promise<void> {
  const { json } = await call(list);
  const position: unknown[] = JSON.parse(atob(json.next_cursor));
  const members = fc.tuple(...position.map(like));
  const cursor = fc.oneof(
    members.map((members) => JSON.stringify(members)),
    fc.json(),
    fc.string(),
  ).map((text) => new TextEncoder().encode(text).toBase64({ alphabet: "base64url" }));
  const seen = new Set<number>();
  await fuzz(
    fc.asyncProperty(fc.array(cursor, { minLength: 10, maxLength: 10 }), async (cursors) => {
      const answers = cursors.map((cursor) => call(`${list}&cursor=${cursor}`));
      for (const { status, json } of await inTime("all are answered", Promise.all(answers))) {
        assert.ok(status === 200 || json.code === "BAD_REQUEST", JSON.stringify(json));
        seen.add(status);
      }
    }),
    150,
  );
  assert.deepEqual(seen, new Set([200, 400]));
}

/** A version, a time or an id of a cursor, and what could stand in its place. */
function like(member: unknown): fc.Arbitrary<unknown> {
  if (typeof member === "number") return fc.oneof(fc.constant(member), fc.integer(), anyNumber);
  const isTime = `${member}`.endsWith("Z");
  const others = isTime
    ? fc.oneof(
      fc.constantFrom("0000-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z", "infinity"),
      fc.date({ noInvalidDate: true }).map((date) => date.toISOString().replace("Z", "000Z")),
    )
    : fc.uuid();
  return fc.oneof(fc.constant(member), others, fc.string());
}
