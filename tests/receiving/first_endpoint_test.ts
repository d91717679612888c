// The statement that receives events has no part for orders while there is no endpoint. The first
// endpoint appears at any moment.
import assert from "node:assert/strict";
import { FanOut } from "../../notification/endpoints/fan_out.ts";
import { readNotification } from "../../notification/notification.ts";
import { receiveEvents } from "../../notification/receive_events.ts";
import { ask } from "../../tools/servers/asking.ts";
import { type Opened, openFresh } from "../support/databases.ts";
import { bodyOf, eventOf } from "../support/events.ts";

const atOnce = 8;

Deno.test("batches that are received at once with the first endpoint lose neither events nor orders", async () => {
  await using tables = await openFresh("notification");
  const fanOut = new FanOut();
  const receiveAll = async (name: string) => {
    const users = Array.from({ length: atOnce }, (_, number) => `${name}-${number}`);
    const all = await Promise.all(users.map((user) => receive(tables, fanOut, user)));
    assert.deepEqual(all.map(({ result }) => result), users.map(() => [true]));
  };
  await receiveAll("before"); // so that each has a connection
  assert.equal(fanOut.isOn, false, "no endpoint exists");
  await insertEndpoint(tables);
  await receiveAll("after");
  assert.deepEqual(await countRows(tables), { notifications: 2 * atOnce, orders: atOnce });
});

Deno.test("duplicates stay duplicates, with endpoints and without", async () => {
  await using tables = await openFresh("notification");
  const fanOut = new FanOut();
  const event = readNotification(bodyOf(eventOf()));
  const receiveIt = () =>
    receiveEvents(tables.database, [event], { predecessorWaitMs: 1_000, fanOut });
  assert.deepEqual((await receiveIt()).result, [true]);
  assert.deepEqual((await receiveIt()).result, [false]);
  await insertEndpoint(tables);
  fanOut.isOn = false;
  assert.deepEqual((await receiveIt()).result, [false]);
  assert.deepEqual(await countRows(tables), { notifications: 1, orders: 0 });
});

function receive({ database }: Opened, fanOut: FanOut, userId: string) {
  const event = readNotification(bodyOf(eventOf({ userId })));
  return receiveEvents(database, [event], { predecessorWaitMs: 1_000, fanOut });
}

function insertEndpoint({ ownerUrl }: Opened): Promise<unknown> {
  return ask(
    ownerUrl,
    `insert into endpoints (endpoint_id, caller, url, ordering, at_once)
     values (gen_random_uuid(), 'shop', 'https://shop.example/hook', 'key', 4)`,
  );
}

async function countRows({ ownerUrl }: Opened): Promise<unknown> {
  const [counts] = await ask(
    ownerUrl,
    `select (select count(*)::int from notifications) as notifications,
       (select count(*)::int from outbox_orders) as orders`,
  );
  return counts;
}
