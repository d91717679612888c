// Receivers that are slow, endless, huge, broken or gone: each answer has its reason code, its status in
// the ledger, and a bound in time and memory. W-111.
import assert from "node:assert/strict";
import type { Behaviour } from "../../tools/receiver/receiver.ts";
import { memoryOf } from "../../tools/servers/memory.ts";
import { until } from "../../tools/servers/wait.ts";
import {
  attemptsOf,
  give,
  ledger,
  orderRows,
  type Orders,
  startOrders,
  untilAllAre,
} from "../support/orders.ts";

const sendTimeoutMs = 1_500;
const start = () =>
  startOrders({
    NOTIFICATION_ORDERS_MAX_ATTEMPTS: "2",
    NOTIFICATION_ORDERS_SEND_TIMEOUT: `${sendTimeoutMs}ms`,
    NOTIFICATION_ENDPOINTS_AT_ONCE: "100",
  });

/** What a receiver did is reported as the end of an order, and as no error of the services. */
function assertCalm({ service, sender }: Orders): void {
  const errors = [...service.log, ...sender.log].filter(({ level, message }) =>
    ["error", "fatal"].includes(level) && !/ gave up on /.test(message)
  );
  assert.deepEqual(errors, []);
}

/** What became of one order to a path of its own that behaves like this. */
async function sendTo(stage: Orders, behaviour: Behaviour) {
  const path = `/${crypto.randomUUID()}`;
  stage.receiver.behaveAt(path, behaviour);
  return await outcomeOf(stage, await give(stage, { url: stage.receiver.url + path }), path);
}

async function outcomeOf(stage: Orders, id: string, path: string) {
  const find = async () => (await orderRows(stage)).find((row) => row.id === id);
  await until(
    "it is decided",
    async () => ["SUCCEEDED", "ABORTED"].includes((await find())?.status ?? ""),
  );
  const row = await find();
  const entry = (await ledger(stage)).find(({ order_id }) => order_id === id);
  assert.ok(row && entry);
  const attempts = await attemptsOf(stage, id);
  return { path, row, entry, attempts, arrived: stage.receiver.arrived(path) };
}

const unreadable: [Behaviour, reason: string, httpStatus: number][] = [
  ["hang", "TIMEOUT", 504],
  ["hang after head", "TIMEOUT", 504],
  ["slow body", "TIMEOUT", 504],
  [{ delayMs: 60_000 }, "TIMEOUT", 504],
  ["close", "CONNECTION_FAILED", 502],
  ["close in head", "CONNECTION_FAILED", 502],
  ["close in body", "CONNECTION_FAILED", 502],
  ["reset", "CONNECTION_FAILED", 502],
  ["reset in body", "CONNECTION_FAILED", 502],
  ["endless head", "CONNECTION_FAILED", 502],
  ["broken head", "CONNECTION_FAILED", 502],
  ["wrong length", "CONNECTION_FAILED", 502],
  [{ raw: "" }, "CONNECTION_FAILED", 502],
  [{ raw: "HTTP/1.1 many\r\n\r\n" }, "CONNECTION_FAILED", 502],
];

Deno.test("a receiver that does not answer properly is retried, with the reason that fits", async () => {
  await using stage = await start();
  await Promise.all(unreadable.map(async ([behaviour, reason, httpStatus]) => {
    const what = JSON.stringify(behaviour);
    const { row, entry, attempts, arrived } = await sendTo(stage, behaviour);
    assert.deepEqual([row.status, row.last_error_code], ["ABORTED", reason], what);
    assert.deepEqual(
      [entry.status, entry.http_status, entry.reason_code, entry.attempts],
      ["FAILED", httpStatus, reason, 2],
      what,
    );
    assert.equal(arrived.length, 2, `${what}: one request for each attempt`);
    assert.deepEqual(attempts.map(({ outcome }) => outcome), ["RETRIED", "GAVE_UP"], what);
    for (const { took_ms, error } of attempts) {
      assert.ok(took_ms < sendTimeoutMs + 1_000, `${what} took ${took_ms} ms`);
      assert.ok(error, what);
    }
    assert.ok((row.last_error_msg ?? "").length <= 512);
  }));
  assertCalm(stage);
});

const statuses: [status: number, reason: string | null, httpStatus: number, attempts: number][] = [
  [200, null, 200, 0],
  [201, null, 201, 0],
  [204, null, 204, 0],
  [299, null, 299, 0],
  [300, "REDIRECTED", 502, 2],
  [304, "REDIRECTED", 502, 2],
  [400, "REFUSED", 400, 2],
  [401, "REFUSED", 401, 2],
  [404, "REFUSED", 404, 2],
  [409, "REFUSED", 409, 2],
  [499, "REFUSED", 499, 2],
  [410, "GONE", 410, 1],
  [500, "SERVER_ERROR", 502, 2],
  [503, "SERVER_ERROR", 502, 2],
  [599, "SERVER_ERROR", 502, 2],
];

Deno.test("only 2xx is success, and each other status has its reason", async () => {
  await using stage = await start();
  await Promise.all(statuses.map(async ([status, reason, httpStatus, attempts]) => {
    const { row, entry, arrived } = await sendTo(stage, status);
    assert.equal(row.status, reason === null ? "SUCCEEDED" : "ABORTED", `${status}`);
    assert.deepEqual(
      [row.last_error_code, entry.reason_code, entry.http_status, row.attempts],
      [reason, reason, httpStatus, attempts],
      `${status}`,
    );
    assert.equal(arrived.length, Math.max(1, attempts), `${status}`);
  }));
});

Deno.test("W-111: a redirect is not followed, wherever it leads", async () => {
  await using stage = await start();
  const targets = ["/elsewhere", "http://169.254.169.254/latest", "//[::1]/", "file:///etc/passwd"];
  await Promise.all(targets.map(async (target) => {
    for (const status of [301, 302, 303, 307, 308]) {
      const { entry, arrived } = await sendTo(stage, { status, headers: { Location: target } });
      assert.equal(entry.reason_code, "REDIRECTED");
      assert.deepEqual(arrived.map(({ method }) => method), ["POST", "POST"]);
    }
  }));
  assert.deepEqual(stage.receiver.arrived("/elsewhere"), []);
});

Deno.test("W-111: 429 waits as long as Retry-After says, and counts nothing", async () => {
  await using stage = await start();
  const path = "/throttled";
  const behaviour = { status: 429, headers: { "Retry-After": "2" } };
  stage.receiver.behaveAt(path, behaviour, behaviour, behaviour, 200);
  const id = await give(stage, { url: stage.receiver.url + path });
  const { row, entry, arrived } = await outcomeOf(stage, id, path);
  assert.deepEqual([row.status, row.attempts, entry.attempts], ["SUCCEEDED", 0, 0]);
  assert.equal(arrived.length, 4, "more than the highest number of attempts");
  for (const [i, { at }] of arrived.entries()) {
    const afterMs = at - (arrived[i - 1]?.at ?? -Infinity);
    assert.ok(afterMs >= 1_950, `asked again after ${afterMs} ms`);
  }
});

async function throttledFor(retryAfter: string | undefined): Promise<number> {
  await using other = await startOrders();
  const headers: Record<string, string> = retryAfter === undefined
    ? {}
    : { "Retry-After": retryAfter };
  other.receiver.behave({ status: 429, headers });
  await give(other, { url: other.receiver.url });
  await other.receiver.until(1);
  const [row] = await untilThrottled(other);
  assert.equal(row?.attempts, 0);
  return Number(row?.next_run_at) - Number(row?.updated_at);
}

async function untilThrottled(other: Orders) {
  await until("it is put off", async () => (await orderRows(other))[0]?.next_run_at !== null);
  return await untilAllAre(other, ["PENDING", "FAILED"]);
}

Deno.test("W-111: Retry-After may be a date, is capped at an hour, and nonsense is ignored", async () => {
  const hourMs = 3_600_000;
  assert.equal(await throttledFor("999999999"), hourMs);
  const inTenMinutes = await throttledFor(new Date(Date.now() + 600_000).toUTCString());
  assert.ok(inTenMinutes > 590_000 && inTenMinutes <= 600_000, `${inTenMinutes} ms`);
  for (const nonsense of [undefined, "soon", "-5", "1e9", "NaN", "5; 6"]) {
    const ms = await throttledFor(nonsense);
    assert.ok(ms > 0 && ms <= hourMs, `${nonsense}: ${ms} ms`);
  }
});

Deno.test("W-111: what is throttled for a day ends ABORTED with THROTTLED", async () => {
  await using other = await startOrders();
  other.receiver.behave({ status: 429, headers: { "Retry-After": "1" } });
  await give(other, { url: other.receiver.url });
  await untilThrottled(other);
  await other.rows("update outbox_orders set throttled_since = now() - interval '23 hours'");
  await other.receiver.until(3);
  await untilThrottled(other);
  await other.rows("update outbox_orders set throttled_since = now() - interval '25 hours'");
  const [row] = await untilAllAre(other, ["ABORTED"]);
  assert.equal(row?.last_error_code, "THROTTLED");
  const [entry] = await ledger(other);
  assert.deepEqual(
    [entry?.status, entry?.http_status, entry?.reason_code],
    ["FAILED", 429, "THROTTLED"],
  );
});

Deno.test("of a huge or endless answer the first 4 KiB are kept, and no more is held in memory", async () => {
  await using stage = await start();
  const before = memoryOf(stage.sender.pid).mebibytes;
  for (const behaviour of ["endless body", "huge body"] as const) {
    const { entry, attempts } = await sendTo(stage, behaviour);
    assert.deepEqual([entry.status, entry.http_status], ["SUCCEEDED", 200], behaviour);
    const kept = attempts.at(-1)?.response_body ?? "";
    assert.equal(kept.length, 4_096, behaviour);
    assert.ok(JSON.stringify(entry.response_payload_json).length <= 4_098, behaviour);
  }
  assertCalm(stage);
  const grownMiB = memoryOf(stage.sender.pid).mebibytes - before;
  assert.ok(grownMiB < 64, `${grownMiB} MiB more`);
});

Deno.test("any bytes of an answer can be stored", async () => {
  await using stage = await start();
  const bodies = [
    "\0",
    "a\0b",
    "\u001b[2J",
    "\u{1F3AB}".repeat(2_000),
    '{"a":"\\u0000"}',
    "{",
    '"\\ud800"',
  ];
  await Promise.all(bodies.map(async (body) => {
    const { entry } = await sendTo(stage, { body });
    assert.equal(entry.status, "SUCCEEDED", JSON.stringify(body));
  }));
  const raw = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nX-Odd: \xff\xfe\r\n\r\n\xff\xfe\x80\x00";
  assert.equal((await sendTo(stage, { raw })).entry.status, "SUCCEEDED");
});
