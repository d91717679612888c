// `deno task ops` with more rows than fit on one page, and with services that know different
// events: its sums, its order and its exit code.
import assert from "node:assert/strict";
import { ask } from "../support/entitlement.ts";
import { ops } from "./ops.ts";
import { insertEvents, manyEvents } from "../support/outbox.ts";
import { insertEntitlement } from "./rows.ts";
import { type Stack, startStack } from "../support/stack.ts";

// The service changes no row by itself, so the tables contain only what the tests have written.
function startStill(): Promise<Stack> {
  return startStack({
    entitlement: {
      ENTITLEMENT_OUTBOX_POLL_INTERVAL: "1h",
      ENTITLEMENT_RECONCILE_ENABLED: "false",
      ENTITLEMENT_RETENTION_ENABLED: "false",
    },
  });
}

const urlsOf = ({ entitlement, place }: Stack) => ({
  outbox: entitlement.database.ownerUrl,
  delivery: place.ownerUrl,
});

/** What the commands print with --json, as far as these tests read it. */
interface Said {
  problems: string[];
  replayed: number;
  dead_letters: { event_id: string }[];
  events: { event_id: string; notification?: { status: string } }[];
  operations: { reason: string }[];
  operation_id: string;
  waiting: number;
  erased: boolean;
}

async function json(stack: Stack, ...args: string[]): Promise<{ code: number; said: Said }> {
  const { code, output, errors } = await ops(stack, ...args, "--json");
  assert.equal(errors, "");
  return { code, said: JSON.parse(output) };
}

Deno.test("ops sends back more dead letters than a service accepts at once, by id and by error", async () => {
  await using stack = await startStill();
  const { outbox } = urlsOf(stack);
  for (const how of ["ids", "error"]) {
    await ask(outbox, "truncate outbox_events");
    const ids = await insertEvents(outbox, manyEvents({ keys: 250, versions: 1 }));
    await ask(outbox, "update outbox_events set status = 'FAILED', last_error = 'no'");
    const shown = await ops(stack, "dead", "list", "--limit", "200");
    assert.match(shown.output, /^… and more: use --limit/m);
    const which = how === "ids" ? ids : ["--error", "no"];
    const { code, said } = await json(
      stack,
      "dead",
      "send-back",
      "outbox",
      ...which,
      "--reason",
      "r",
    );
    assert.equal(code, 0);
    const sent = said.dead_letters.map(({ event_id }) => event_id);
    assert.deepEqual(sent.sort(), ids.toSorted(), how);
  }
});

Deno.test("a long range is replayed to its end, and a dry run asks once", async () => {
  await using stack = await startStill();
  const { outbox } = urlsOf(stack);
  await insertEvents(outbox, manyEvents({ keys: 2_500, versions: 1 }));
  await ask(
    outbox,
    `update outbox_events set status = 'PUBLISHED', published_at = now() - interval '1 hour',
       stream_generation = 1, stream_seq = 1`,
  );
  const range = ["--from", "90m", "--reason", "r"];
  assert.equal((await json(stack, "replay", ...range, "--dry-run")).said.replayed, 2_500);
  assert.equal((await json(stack, "replay", "--from", "50m", "--reason", "r")).said.replayed, 0);
  assert.equal((await json(stack, "replay", ...range)).said.replayed, 2_500);
});

Deno.test("status reports a problem if something has waited too long or was not received", async () => {
  await using stack = await startStill();
  const { outbox } = urlsOf(stack);
  assert.equal((await ops(stack, "status")).code, 0);
  const ids = await insertEvents(outbox, manyEvents({ keys: 25, versions: 1 }));
  const age = async (seconds: number) => {
    await ask(
      outbox,
      `update outbox_events set created_at = now() - make_interval(secs => $1), locked_by = 'another',
         locked_at = now(), lease_until = now() + interval '1 hour', status = 'IN_FLIGHT'`,
      [seconds],
    );
    return await json(stack, "status");
  };
  const young = await age(30);
  assert.deepEqual([young.code, young.said.problems], [0, []]);
  const old = await age(90);
  assert.equal(old.code, 1);
  assert.match(
    old.said.problems[0] ?? "",
    /^an event has waited \d+ .* in the outbox: ops outbox$/,
  );
  const { output } = await ops(stack, "outbox");
  assert.match(output, /^… of 25 that are waiting$/m);

  await ask(outbox, "truncate outbox_events");
  await ask(
    outbox,
    `insert into unreceived_events
       (event_id, occurred_at, user_id, stock_keeping_unit, version, state)
     values ($1, now(), 'ann', 'book', 1, 'MISSING')`,
    [ids[0]],
  );
  const missing = await json(stack, "status");
  assert.deepEqual([missing.code, missing.said.problems], [1, [
    "1 event not received: ops unreceived",
  ]]);
  assert.equal((await ops(stack, "unreceived")).code, 1);
});

Deno.test("the events of a user are listed newest first, and the steps of an event in their order", async () => {
  await using stack = await startStill();
  const { outbox, delivery } = urlsOf(stack);
  const [published = "", received = "", waiting = ""] = await insertEvents(
    outbox,
    manyEvents({ keys: 1, versions: 3 }),
  );
  await insertEntitlement(outbox, { user_id: "user-0", stock_keeping_unit: "sku", version: 3 });
  await ask(
    outbox,
    `update outbox_events set status = 'PUBLISHED', published_at = now(), stream_generation = 1,
       stream_seq = 1
     where event_id = any($1::uuid[])`,
    [[published, received]],
  );
  // It was received a second before its acknowledgement reached the relay.
  await ask(
    delivery,
    `insert into notifications
       (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at, payload_json,
        status, created_at, sent_at)
     select id, id, 'user-0', 'user-0:sku', 1, 'EntitlementGranted', now(), '{}', 'SENT',
       now() - interval '1 second', now()
     from unnest($1::uuid[]) as id`,
    [[published, received]],
  );
  // The notification service no longer knows the user of this one, as after an erasure.
  await ask(delivery, "update notifications set user_id = 'erased' where event_id = $1", [
    received,
  ]);
  await ask(
    outbox,
    "update outbox_events set status = 'PENDING', published_at = null where event_id = $1",
    [received],
  );
  const { said } = await json(stack, "timeline", "--user", "user-0");
  const seen = said.events.map((one) => [
    one.event_id,
    one.notification?.status,
  ]);
  assert.deepEqual(seen, [[waiting, undefined], [received, "SENT"], [published, "SENT"]]);
  const { output } = await ops(stack, "timeline", published);
  assert.deepEqual(output.match(/\b(CHANGED|PUBLISHED|RECEIVED|SENT)\b(?= |$)/gm)?.slice(-4), [
    ...["CHANGED", "PUBLISHED", "RECEIVED", "SENT"],
  ]);
});

Deno.test("the operations of both services are listed newest first", async () => {
  await using stack = await startStill();
  const { outbox, delivery } = urlsOf(stack);
  for (
    const [url, layer, hours] of [[outbox, "outbox", 2], [delivery, "delivery", 1], [
      outbox,
      "outbox",
      3,
    ]] as const
  ) {
    await ask(
      url,
      `insert into operations (operation_id, done_at, kind, layer, who, reason, items)
       values (gen_random_uuid(), now() - $1::int * interval '1 hour', 'SEND_BACK', $2, 'kim', $1::text, '[]')`,
      [hours, layer],
    );
  }
  const { said } = await json(stack, "operations", "--limit", "200");
  const reasons = said.operations.map(({ reason }) => reason);
  assert.deepEqual(reasons, ["1", "2", "3"]);
});

Deno.test("a user is erased from both services under one id, or from none while an event is on its way", async () => {
  await using stack = await startStill();
  const { outbox, delivery } = urlsOf(stack);
  await insertEntitlement(outbox, { user_id: "ann", stock_keeping_unit: "book", version: 1 });
  await ask(
    delivery,
    `insert into notifications
       (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at, payload_json,
        next_retry_at)
     values (gen_random_uuid(), gen_random_uuid(), 'ann', 'ann:book', 1, 't', now(), '{}',
       now() + interval '1 hour')`,
  );
  const usersIn = (url: string, table: string) => ask(url, `select user_id from ${table}`);
  const erase = () => json(stack, "erase-user", "ann", "--reason", "asked for it");
  const early = await erase();
  assert.deepEqual([early.code, early.said.waiting, early.said.erased], [1, 1, false]);
  assert.deepEqual(await usersIn(outbox, "entitlements"), [{ user_id: "ann" }]);

  await ask(delivery, "update notifications set status = 'SENT', sent_at = now()");
  const { code, said } = await erase();
  assert.deepEqual([code, said.erased], [0, true]);
  const erased = [{ user_id: `erased-${said.operation_id}` }];
  assert.deepEqual(await usersIn(outbox, "entitlements"), erased);
  assert.deepEqual(await usersIn(delivery, "notifications"), erased);
});
