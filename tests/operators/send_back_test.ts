// The statements that send dead letters back: they change only rows that are dead letters at that
// moment, once, give back all attempts, and wake the worker.
import assert from "node:assert/strict";
import { Hono } from "hono";
import { newOperation } from "../../shared/operators/operations.ts";
import { sendBack } from "../../shared/operators/send_back.ts";
import { ask, countRows, withClient } from "../../tools/servers/asking.ts";
import { waitingForLocks } from "../support/locks.ts";
import { type Opened } from "../support/databases.ts";
import { layers } from "./dead_layers.ts";
import { inTime, until } from "../../tools/servers/wait.ts";

const operation = () => newOperation({ who: "kim", reason: "the channel is back" });

for (const [name, open] of Object.entries(layers)) {
  Deno.test(`${name}: two operators at the same time send back once, and the worker is woken`, async () => {
    await using layer = await open();
    const { tables, table, wake } = layer;
    const found = await table.findByIds(layer.dead);
    const sent = await withClient(tables.ownerUrl, async (holder) => {
      await holder.query("begin");
      await holder.query(`select from ${layer.name} for update`);
      const both = [1, 2].map(() => table.sendBack(found, operation()));
      await until("both wait", async () => await waitingForLocks(tables.ownerUrl) === 2);
      await holder.query("commit");
      return await Promise.all(both);
    });
    assert.deepEqual(sent.flatMap(({ moved }) => moved).sort(), layer.dead.toSorted());
    const [recorded] = await ask(
      tables.ownerUrl,
      "select count(*)::int as operations, sum(jsonb_array_length(items))::int as items from operations",
    );
    assert.deepEqual(recorded, { operations: 1, items: 3 });
    await inTime("it was woken", wake.wait(3_600_000, new AbortController().signal), 5_000);
  });

  Deno.test(`${name}: one page is sent back, and the rows after it stay dead letters`, async () => {
    await using layer = await open();
    const { table, dead } = layer;
    const [one] = await table.findByIds(dead);
    const app = new Hono().post("/", sendBack([table]));
    const body = { error: one?.error, limit: 2, who: "kim", reason: "the channel is back" };
    const answer = await app.request("/", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    const { dead_letters, next_cursor } = await answer.json();
    assert.deepEqual(dead_letters.map(({ id }: { id: string }) => id), dead.slice(0, 2));
    assert.equal(typeof next_cursor, "string");
    const left = await table.findByIds(dead);
    assert.deepEqual(left.map(({ id }) => id), dead.slice(2));
  });
}

Deno.test("only events that are still FAILED are sent back, with all their attempts", async () => {
  await using layer = await layers.outbox();
  const { tables, table, dead } = layer;
  const found = await table.findByIds(dead);
  await ask(
    tables.ownerUrl,
    `update outbox_events
     set status = 'PUBLISHED', published_at = now(), stream_generation = 1, stream_seq = 1
     where event_id = $1`,
    [dead[0]],
  );
  await ask(tables.ownerUrl, "update outbox_events set status = 'PENDING' where event_id = $1", [
    dead[1],
  ]);
  const stillDead = await table.find({ after: undefined, error: undefined, limit: 10 });
  assert.deepEqual(stillDead.map(({ id }) => id), [dead[2]]);
  assert.deepEqual((await table.sendBack(found, operation())).moved, [dead[2]]);
  assert.deepEqual(await statesIn(tables, "outbox_events", "event_id"), [
    ["PUBLISHED", 3],
    ["PENDING", 3],
    ["PENDING", 0],
  ]);
});

Deno.test("only reservations that are still FAILED are sent back; they are due at once, with all their attempts", async () => {
  await using layer = await layers.reservation();
  const { tables, table, dead } = layer;
  const found = await table.findByIds(dead);
  await ask(
    tables.ownerUrl,
    "update point_reservations set status = 'CANCELLED', done_at = now() where id = $1",
    [dead[0]],
  );
  assert.deepEqual((await table.sendBack(found, operation())).moved.sort(), dead.slice(1));
  assert.deepEqual(await statesIn(tables, "point_reservations", "id"), [
    ["CANCELLED", 3],
    ["PENDING", 0],
    ["PENDING", 0],
  ]);
  const late = "point_reservations where unfinished and due_at < now() - interval '1 minute'";
  assert.equal(await countRows(tables.ownerUrl, late), 0, "most claims would not find them");
});

Deno.test("only notifications that are still FAILED are sent back, with all their attempts", async () => {
  await using layer = await layers.delivery();
  const { tables, table, dead } = layer;
  await ask(
    tables.ownerUrl,
    "update notifications set status = 'SENT', sent_at = now() where version = 1",
  );
  await table.sendBack(await table.findByIds(dead), operation());
  assert.deepEqual(await statesIn(tables, "notifications", "version"), [
    ["SENT", 3],
    ["PENDING", 0],
    ["PENDING", 0],
  ]);
});

Deno.test("a deleted notification is restored unchanged", async () => {
  await using layer = await layers.delivery();
  const { tables, table, dead } = layer;
  const columns = "notification_id, event_id, user_id, aggregate_key, version, type, payload_json";
  const rows = () => ask(tables.ownerUrl, `select ${columns} from notifications order by version`);
  const before = await rows();
  await ask(tables.ownerUrl, "delete from notifications");
  await table.sendBack(await table.findByIds(dead), operation());
  assert.deepEqual(await rows(), before);
});

async function statesIn({ ownerUrl }: Opened, table: string, order: string) {
  const rows = await ask<{ status: string; attempt_count: number }>(
    ownerUrl,
    `select status, attempt_count from ${table} order by ${order}`,
  );
  return rows.map(({ status, attempt_count }) => [status, attempt_count]);
}
