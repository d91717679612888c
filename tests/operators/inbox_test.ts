// The notifications of a user, for the gateway and, with the debug switch, for operators.
import assert from "node:assert/strict";
import { type Answer, assertError, call } from "../support/api.ts";
import { ask } from "../support/entitlement.ts";
import { freshPlace, settingsOf } from "../support/notification.ts";
import type { Place } from "../../tools/load/stage.ts";
import { type ServiceProcess, startService } from "../../tools/servers/service_process.ts";

const path = "/debug/notification/inbox";

interface Item {
  notification_id: string;
  created_at: string;
}

Deno.test("an inbox shows each notification as the contract says, the newest first", async () => {
  await using place = await freshPlace();
  await using service = await startInbox(place);
  await insert(place, "ann", ["2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.678902Z"]);
  await ask(
    place.ownerUrl,
    `update notifications set status = 'SENT', attempt_count = 2, sent_at = created_at
     where version = 1`,
  );
  const { status, json, headers } = await list(service, "ann");
  assert.equal(status, 200);
  assert.equal(headers.get("Content-Type"), "application/json");
  assert.deepEqual(Object.keys(json), ["user_id", "notifications"], "no next_cursor at the end");
  const [newer, older] = json.notifications;
  assert.deepEqual(Object.keys(older), [
    ...["notification_id", "event_id", "type", "status", "attempt_count", "created_at", "sent_at"],
    "payload",
  ]);
  const uuid = /^[0-9a-f-]{36}$/;
  for (const { notification_id, event_id, payload } of [newer, older]) {
    assert.match(notification_id, uuid);
    assert.match(event_id, uuid);
    assert.deepEqual(payload, { stock_keeping_unit: "größe" });
  }
  const seen = ({ type, status, attempt_count, created_at, sent_at }: Record<string, unknown>) => [
    ...[type, status, attempt_count, created_at, sent_at],
  ];
  assert.deepEqual(seen(newer), ["T", "PENDING", 0, "2026-01-02T03:04:05.678902Z", null]);
  const time = "2026-01-02T03:04:05.678901Z";
  assert.deepEqual(seen(older), ["T", "SENT", 2, time, time]);
});

Deno.test("walking by cursor meets every row once, also where many have the same time", async () => {
  await using place = await freshPlace();
  await using service = await startInbox(place);
  const times = Array.from({ length: 500 }, (_, i) => `2026-01-02T03:04:05.67890${i % 3}Z`);
  await insert(place, "ann", times);
  await insert(place, "bob", times.slice(0, 20));
  for (const limit of [7, 50, 166, 200]) {
    const items = await walk(service, "ann", limit);
    assert.equal(new Set(items.map(({ notification_id }) => notification_id)).size, 500);
    assert.equal(items.length, 500);
    const order = items.map(({ created_at, notification_id }) => created_at + notification_id);
    assert.deepEqual(order, order.toSorted().toReversed());
  }
  assert.equal((await list(service, "ann")).json.notifications.length, 50, "the default");
});

Deno.test("rows that arrive between two pages neither repeat nor hide others", async () => {
  await using place = await freshPlace();
  await using service = await startInbox(place);
  await insert(place, "ann", Array.from({ length: 60 }, () => "2026-01-02T03:04:05.678901Z"));
  const { json } = await list(service, "ann", "?limit=30");
  await insert(place, "ann", Array.from({ length: 10 }, () => "2026-01-03T00:00:00Z"), 100);
  const next = await list(service, "ann", `?limit=30&cursor=${json.next_cursor}`);
  const ids = [...json.notifications, ...next.json.notifications]
    .map(({ notification_id }: Item) => notification_id);
  assert.equal(new Set(ids).size, 60);
  assert.equal(next.json.next_cursor, undefined);
});

Deno.test("any user id that the API accepts is taken literally", async () => {
  await using place = await freshPlace();
  await using service = await startInbox(place);
  await insert(place, "ann", ["2026-01-02T03:04:05Z"]);
  const odd = [
    ...[
      "' or '1'='1",
      "ann'; drop table notifications; --",
      "%",
      "_",
      "a/b",
      "a?b#c",
      "größe 密 🔑",
    ],
    ...["{user_id}", "*", "ANN", "ann ", "x".repeat(255)],
  ];
  for (const user of odd) {
    const before = await list(service, user);
    assert.deepEqual(
      [before.status, before.json],
      [200, { user_id: user, notifications: [] }],
      user,
    );
    await insert(place, user, ["2026-01-02T03:04:05Z"]);
    assert.equal((await list(service, user)).json.notifications.length, 1, user);
  }
  assert.equal((await list(service, "ann")).json.notifications.length, 1);
});

Deno.test("an invalid request is refused with the reason", async () => {
  await using place = await freshPlace();
  await using service = await startInbox(place);
  const cursorProblem = "cursor must be a next_cursor of this service";
  const encoded = (value: unknown) =>
    btoa(typeof value === "string" ? value : JSON.stringify(value)).replaceAll("=", "");
  const id = "01a1eece-e608-7de8-b25d-e13b858611ce";
  const time = "2026-01-02T03:04:05.678901Z";
  const cursors = [
    ...[
      "",
      "x",
      "%00",
      "' or 1=1 --",
      encoded("not json"),
      encoded(null),
      encoded({}),
      encoded([]),
    ],
    ...[
      encoded([time]),
      encoded([time, "no id"]),
      encoded(["yesterday", id]),
      encoded([time, id, 1]),
    ],
    ...[encoded(["0000-01-01T00:00:00.000000Z", id]), encoded(["infinity", id])],
    ...[encoded(["2026-02-30T00:00:00.000000Z", id]), encoded([`${time}' or 1=1`, id])],
    encoded([time, "x".repeat(4_000)]),
  ];
  const cases: [string, string, string][] = [
    ["ann", "?limit=0", "limit must be at least 1"],
    ["ann", "?limit=-1", "limit must be at least 1"],
    ["ann", "?limit=201", "limit must be at most 200"],
    ["ann", "?limit=1.5", "limit must be a whole number"],
    ["ann", "?limit=many", "limit must be a number"],
    ["ann", "?limit=", "limit must be at least 1"],
    ["ann", "?limit=1%27%20or%201=1", "limit must be a number"],
    [" ", "", "user_id is required"],
    ["x".repeat(256), "", "user_id must have at most 255 characters"],
    ["a\tb", "", "user_id must not have control characters"],
    ["a\0b", "", "user_id must not have control characters"],
    ...cursors.map((
      cursor,
    ): [string, string, string] => ["ann", `?cursor=${cursor}`, cursorProblem]),
  ];
  for (const [user, query, message] of cases) {
    assertError(await list(service, user, query), 400, "BAD_REQUEST", message);
  }
  const undecodable = await call(`${service.url}${path}/%ff`);
  assertError(undecodable, 400, "BAD_REQUEST", "user_id must be percent-encoded UTF-8");
  const posted = await call(`${service.url}${path}/ann`, { method: "POST" });
  assertError(posted, 405, "METHOD_NOT_ALLOWED");
  assert.equal(posted.headers.get("Allow"), "GET, HEAD");
});

Deno.test("a cursor of a megabyte and one with an extreme time do no harm", async () => {
  await using place = await freshPlace();
  await using service = await startInbox(place);
  const huge = await fetch(`${service.url}${path}/ann?cursor=${"x".repeat(1_000_000)}`)
    .then((response) => response.text().then(() => response.status), () => 0);
  assert.ok([0, 400, 414, 431].includes(huge), `${huge}`);
  for (const year of ["0001", "9999"]) {
    const cursor = btoa(JSON.stringify([`${year}-12-31T23:59:59.999999Z`, crypto.randomUUID()]));
    assert.equal((await list(service, "ann", `?cursor=${encodeURIComponent(cursor)}`)).status, 200);
  }
});

Deno.test("without the debug setting there is no inbox", async () => {
  await using place = await freshPlace();
  await using service = await startService("notification", settingsOf(place));
  assertError(await list(service, "ann"), 404, "NOT_FOUND");
  const description = await call(`${service.url}/openapi.json`);
  assert.ok(!description.text.includes("inbox"));
});

function startInbox(place: Place): Promise<ServiceProcess> {
  return startService("notification", {
    ...settingsOf(place),
    NOTIFICATION_DEBUG_ENABLED: "true",
    NATS_URL: "nats://127.0.0.1:1",
    NOTIFICATION_RETENTION_ENABLED: "false",
  });
}

function list({ url }: ServiceProcess, user: string, query = ""): Promise<Answer> {
  return call(`${url}${path}/${encodeURIComponent(user)}${query}`);
}

async function walk(service: ServiceProcess, user: string, limit: number): Promise<Item[]> {
  const items: Item[] = [];
  for (let cursor: string | undefined = ""; cursor !== undefined;) {
    const { status, json, text }: Answer = await list(
      service,
      user,
      `?limit=${limit}${cursor && `&cursor=${cursor}`}`,
    );
    assert.equal(status, 200, text);
    assert.ok(json.notifications.length <= limit);
    items.push(...json.notifications);
    cursor = json.next_cursor;
  }
  return items;
}

/** Inserts notifications that were received at these times and are not due today. */
async function insert(
  { ownerUrl }: Place,
  user: string,
  times: string[],
  firstVersion = 1,
): Promise<void> {
  await ask(
    ownerUrl,
    `insert into notifications
       (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at, payload_json,
        created_at, next_retry_at)
     select gen_random_uuid(), gen_random_uuid(), $1, $1 || ':sku', $3::int + place - 1, 'T', now(),
       '{"stock_keeping_unit": "größe"}', time,
       now() + interval '1 day'
     from unnest($2::timestamptz[]) with ordinality as given (time, place)`,
    [user, times, firstVersion],
  );
}

Deno.test("the same list is answered without the debug switch, under /v1", async () => {
  await using place = await freshPlace();
  await using service = await startService("notification", settingsOf(place));
  await insert(place, "ann", Array.from({ length: 5 }, () => "2026-01-02T03:04:05.678901Z"));
  const own = `${service.url}/v1/users/ann/notifications`;
  const first = await call(`${own}?limit=3`);
  assert.deepEqual([first.status, first.json.notifications.length], [200, 3]);
  const next = await call(`${own}?limit=3&cursor=${first.json.next_cursor}`);
  const shown = [...first.json.notifications, ...next.json.notifications];
  assert.equal(new Set(shown.map(({ notification_id }: Item) => notification_id)).size, 5);
  assertError(await call(`${own}?limit=201`), 400, "BAD_REQUEST", "limit must be at most 200");
  assertError(await call(`${service.url}${path}/ann`), 404, "NOT_FOUND");
});
