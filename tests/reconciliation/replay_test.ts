// Replay republishes the events of a range of time in bounded batches. Receivers know these events
// already, so there is no other effect than the messages.
import assert from "node:assert/strict";
import { Hono } from "hono";
import { replay } from "../../entitlement/operators/replay.ts";
import { ApiError } from "../../shared/http/errors.ts";
import { Wakeup } from "../../shared/process/signals.ts";
import { assertError, call, grant, revoke } from "../support/api.ts";
import { openFresh } from "../support/databases.ts";
import { countsOf, outcomesOf, untilSent } from "../support/notification.ts";
import { outboxRows, storedEvents } from "../support/outbox.ts";
import { look, operate, type Stack, startStack } from "../support/stack.ts";
import { natsUrl } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";

const path = "/operations/entitlement/replay";

Deno.test("a range is republished batch by batch, in order, and no effect is duplicated", async () => {
  await using stack = await startStack({
    entitlement: { ENTITLEMENT_NATS_DUPLICATE_WINDOW: "100ms" },
    notification: { NOTIFICATION_NATS_DUPLICATE_WINDOW: "100ms" },
  });
  const { entitlement, notification, place } = stack;
  // All changes have the same key, because order is only promised within a key.
  for (let i = 0; i < 5; i++) {
    const change = i % 2 === 0 ? grant : revoke;
    assert.equal((await change(entitlement.url, {}, `change-${i}`)).status, 200);
  }
  await untilSent(place, 5);
  await new Promise((over) => setTimeout(over, 150)); // until the duplicate window is over
  const range = { from: "2026-01-01T00:00:00Z", to: new Date().toISOString(), limit: 2 };
  const dry = await operate(entitlement.url, path, { ...range, dry_run: true });
  assert.deepEqual(dry, { operation_id: null, replayed: 5, complete: true });

  const counts: number[] = [];
  for (let complete = false; !complete;) {
    const answer = await operate(entitlement.url, path, range);
    counts.push(answer.replayed);
    complete = answer.complete;
  }
  assert.deepEqual(counts, [2, 2, 1]);
  await until("all are received again", async () => {
    return await outcomesOf(notification, "duplicate") === 5;
  });
  const stored = await storedEvents(natsUrl, entitlement.stream);
  const ids = stored.map(({ id }) => id);
  assert.deepEqual(ids.slice(5), ids.slice(0, 5), "each once more, in the same order");
  await until("each has its new sequence", async () => {
    const rows = await outboxRows(entitlement.database.ownerUrl);
    return rows.every(({ status, stream_seq }) => status === "PUBLISHED" && stream_seq > 5);
  });
  const { processed_events, notifications, sent } = await countsOf(place);
  assert.deepEqual([processed_events, notifications, sent], [5, 5, 5]);

  const { operations } = await look(entitlement.url, "/debug/entitlement/operations");
  const items = operations.flatMap(({ items }: { items: { stream_seq: number }[] }) => items);
  assert.deepEqual(
    items.map(({ stream_seq }: { stream_seq: number }) => stream_seq).sort(),
    [1, 2, 3, 4, 5],
    "where they lay before",
  );
  const { events: [event] } = await look(
    entitlement.url,
    `/debug/entitlement/timeline?event_id=${ids[0]}`,
  );
  assert.deepEqual(
    event.steps.map(({ step, who }: Record<string, unknown>) => [step, who]),
    [["CHANGED", undefined], ["REPLAYED", "kim"], ["PUBLISHED", undefined]],
  );
});

Deno.test("within the duplicate window the stream itself removes the duplicates of a replay", async () => {
  await using stack = await startStack();
  const { entitlement, place } = stack;
  await grant(entitlement.url);
  await untilSent(place, 1);
  const to = new Date().toISOString();
  await operate(entitlement.url, path, { from: "2026-01-01T00:00:00Z", to });
  await untilPublished(stack);
  assert.equal((await storedEvents(natsUrl, entitlement.stream)).length, 1);
  const [row] = await outboxRows(entitlement.database.ownerUrl);
  assert.equal(row?.stream_seq, 1);
});

Deno.test("a range that ends in the future, or is not a range, is refused", async () => {
  await using stack = await startStack();
  const from = "2026-01-01T00:00:00Z";
  const unstorable = "must be after the year 0, offset by less than 16 hours, in 40 characters";
  const cases: [unknown, string][] = [
    [{ from, to: "9999-01-01T00:00:00Z" }, "to must not be in the future"],
    [{ from, to: "2025-01-01T00:00:00Z" }, "from must not be after to"],
    [{ from, to: "yesterday" }, "to must be a time such as 2026-01-02T03:04:05Z"],
    [{ from: "0000-01-01T00:00:00Z", to: from }, `from ${unstorable}`],
    [{ from: "2025-01-01T00:00:00+16:00", to: from }, `from ${unstorable}`],
    [{ from, to: `2026-01-01T00:00:00.${"1".repeat(200)}Z` }, `to ${unstorable}`],
    [{ to: from }, "from must be a time such as 2026-01-02T03:04:05Z"],
    [{ from, to: from, limit: 1_001 }, "limit must be at most 1000"],
    [{ from, to: from, who: "" }, "who is required"],
  ];
  for (const [body, message] of cases) {
    const answer = await call(`${stack.entitlement.url}${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ who: "kim", reason: "r", ...body as object }),
    });
    assertError(answer, 400, "BAD_REQUEST", message);
  }
});

Deno.test("the clock of the database decides whether a range is over", async () => {
  await using place = await openFresh("entitlement");
  const app = new Hono().post("/", replay(place.database, new Wakeup())).onError((error) =>
    new Response(error.message, { status: error instanceof ApiError ? error.status : 500 })
  );
  const statusUntil = async (minutes: number, processMinutesAhead: number) => {
    const now = Date.now;
    const to = new Date(now() + minutes * 60_000).toISOString();
    const body = JSON.stringify({ from: "2026-01-01T00:00:00Z", to, who: "kim", reason: "r" });
    const headers = { "Content-Type": "application/json" };
    Date.now = () => now() + processMinutesAhead * 60_000;
    try {
      return (await app.request("/", { method: "POST", headers, body })).status;
    } finally {
      Date.now = now;
    }
  };
  assert.equal(await statusUntil(30, 60), 400);
  assert.equal(await statusUntil(-30, -60), 200);
});

async function untilPublished({ entitlement }: Stack): Promise<void> {
  await until("it is published", async () => {
    const rows = await outboxRows(entitlement.database.ownerUrl);
    return rows.every(({ status }) => status === "PUBLISHED");
  });
}
