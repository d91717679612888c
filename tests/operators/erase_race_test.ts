// No user is erased while an event of theirs is on its way, even if it starts during the erasure.
import assert from "node:assert/strict";
import { type Handler, Hono } from "hono";
import { eraseUser } from "../../entitlement/operators/erase_user.ts";
import { eraseUser as eraseNotified } from "../../notification/operators/erase_user.ts";
import { readNotification } from "../../notification/notification.ts";
import { type AskReceiver, receiverOver } from "../../entitlement/reconciliation/ask.ts";
import { NatsLink } from "../../shared/nats/link.ts";
import { getLogger } from "@logtape/logtape";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { call, grant, revoke } from "../support/api.ts";
import { ask } from "../../tools/servers/asking.ts";
import { withClient } from "../support/databases.ts";
import { capture } from "./dead_letters.ts";
import { eventOf } from "../support/events.ts";
import { waitingForLocks, whileTableIsLocked } from "../support/locks.ts";
import { countsOf, untilSent } from "../support/notification.ts";
import { ops } from "./ops.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { natsUrl } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";

const user_id = "ann";

Deno.test("an erasure waits for an event that is published after the receiver was asked", async () => {
  await using stack = await startStack();
  const { entitlement, place } = stack;
  await grant(entitlement.url, { user_id });
  await untilSent(place, 1);
  await whileTableIsLocked(place.ownerUrl, "notifications", async (release) => {
    const between = async () => {
      assert.equal((await revoke(entitlement.url, { user_id })).status, 200);
      await untilPublished(stack, 2);
    };
    assert.equal(await eraseWith(stack, between), "WAITING");
    await release();
  });
  await untilSent(place, 2);
  assert.equal(await eraseWith(stack), "ERASED");
});

Deno.test("an erasure waits for an event that is republished after the receiver was asked", async () => {
  await using stack = await startStack();
  const { entitlement, place } = stack;
  await grant(entitlement.url, { user_id });
  await untilSent(place, 1);
  const between = () =>
    entitlement.rows(
      `update outbox_events
       set status = 'PENDING', published_at = null, next_retry_at = now() + interval '1 hour'`,
    );
  assert.equal(await eraseWith(stack, between), "WAITING");
  const rows = await entitlement.rows("select from entitlements where user_id = $1", [user_id]);
  assert.equal(rows.length, 1);
});

Deno.test("of two users who are erased at the same time under one operation_id, one is refused", async () => {
  await using stack = await startStack();
  const { entitlement, place } = stack;
  for (let round = 0; round < 5; round++) {
    const users = [`ann-${round}`, `bob-${round}`];
    for (const user_id of users) await grant(entitlement.url, { user_id });
    await untilSent(place, 2 * (round + 1));
    const operation_id = crypto.randomUUID();
    const erased = await Promise.all(
      users.map((user_id) =>
        call(`${entitlement.url}/operations/entitlement/erase-user`, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify({ user_id, operation_id, who: "kim", reason: "asked for it" }),
        })
      ),
    );
    assert.deepEqual(erased.map(({ status }) => status).toSorted(), [200, 400]);
  }
});

Deno.test("an erasure waits for an event that is sent back at the same time", async () => {
  await using stack = await startStack();
  const { entitlement, place } = stack;
  await grant(entitlement.url, { user_id });
  await untilSent(place, 1);
  await entitlement.rows("update outbox_events set status = 'FAILED', published_at = null");
  const sendBack =
    "update outbox_events set status = 'PENDING', next_retry_at = now() + interval '1 hour'";
  const { ownerUrl } = entitlement.database;
  assert.equal(await whileAnother(ownerUrl, [sendBack], () => eraseWith(stack)), "WAITING");
  const rows = await ask(ownerUrl, "select from outbox_events where payload->>'user_id' = 'ann'");
  assert.equal(rows.length, 1);
});

for (const isDeleted of [false, true]) {
  const which = isDeleted ? "deleted notification" : "notification";
  Deno.test(`an erasure waits for a ${which} that is sent back at the same time`, async () => {
    await using stack = await startStack();
    const { entitlement, place } = stack;
    await grant(entitlement.url, { user_id });
    await untilSent(place, 1);
    await ask(
      place.ownerUrl,
      `with failed as (
         update notifications set status = 'FAILED', sent_at = null returning *
       )
       insert into notification_dlq (notification_id, event_id, payload_json, error_message)
       select notification_id, event_id, payload_json, 'e' from failed`,
    );
    if (isDeleted) await ask(place.ownerUrl, "delete from notifications");
    const sendBack = [
      "create temporary table dead as select * from notification_dlq",
      "delete from notification_dlq",
      isDeleted
        ? `insert into notifications
             (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at,
              payload_json, next_retry_at)
           select notification_id, event_id, payload_json->>'user_id', 'ann:x', 1, 'type', now(),
             payload_json, now() + interval '1 hour'
           from dead`
        : "update notifications set status = 'PENDING', next_retry_at = now() + interval '1 hour'",
    ];
    const database = openDatabase(place.serviceUrl, "erase");
    const erase = () => answerOf(eraseNotified(database, ({ data }) => readNotification(data)));
    try {
      assert.equal(await whileAnother(place.ownerUrl, sendBack, erase), "WAITING");
    } finally {
      await database.end();
    }
  });
}

Deno.test("an erasure is refused while a captured message of the user is sent back", async () => {
  await using stack = await startStack();
  const { place } = stack;
  const event = eventOf({ userId: user_id });
  await capture(place.ownerUrl, event);
  const database = openDatabase(place.serviceUrl, "erase");
  try {
    const sendBack = [
      `insert into processed_events (event_id) values ('${event.eventId}')`,
      `insert into notifications
         (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at,
          payload_json, next_retry_at)
       values ('${event.eventId}', '${event.eventId}', 'ann', 'ann:x', 1, 'type', now(), '{}',
         now() + interval '1 hour')`,
    ];
    const erase = () => answerOf(eraseNotified(database, ({ data }) => readNotification(data)));
    await assert.rejects(whileAnother(place.ownerUrl, sendBack, erase), /arrived in the meantime/);
    const ofCopy = "select from notification_nats_dlq where message_body is not null";
    assert.equal((await ask(place.ownerUrl, ofCopy)).length, 1);
  } finally {
    await database.end();
  }
});

Deno.test("an erasure waits for an event that was published long after its change", async () => {
  await using stack = await startStack();
  const { entitlement, place } = stack;
  await whileTableIsLocked(place.ownerUrl, "notifications", async (release) => {
    await grant(entitlement.url, { user_id });
    await untilPublished(stack, 1);
    const longAgo = "now() - interval '40 days'";
    await ask(
      entitlement.database.ownerUrl,
      `update entitlement_audit set occurred_at = ${longAgo}`,
    );
    await ask(
      entitlement.database.ownerUrl,
      "update entitlements set hashed_at = (select occurred_at from entitlement_audit)",
    );
    const { code, output } = await ops(stack, "erase-user", user_id, "--reason", "case 7");
    assert.equal(code, 1, output);
    assert.match(output, /still on the way/);
    await release();
  });
  await untilSent(place, 1);
  assert.equal((await ops(stack, "erase-user", user_id, "--reason", "case 7")).code, 0);
  const left = await ask(place.ownerUrl, "select from notifications where user_id = $1", [user_id]);
  assert.deepEqual([left.length, (await countsOf(place)).notifications], [0, 1]);
});

function untilPublished({ entitlement }: Stack, count: number): Promise<unknown> {
  return until("it is published", async () => {
    const rows = await entitlement.rows("select from outbox_events where status = 'PUBLISHED'");
    return rows.length === count;
  });
}

/** Runs the service's own code, and `between` right after it has asked what was received. */
async function eraseWith(
  { entitlement }: Stack,
  between: () => Promise<unknown> = () => Promise.resolve(),
): Promise<string> {
  const log = getLogger("test");
  const database = openDatabase(entitlement.database.serviceUrl, "erase");
  const link = new NatsLink({ urls: natsUrl }, "erase", log);
  try {
    await link.session(new AbortController().signal);
    const receiver = receiverOver(link, entitlement.subject);
    let asked = 0;
    const askThen: AskReceiver = async (...question) => {
      const receipt = await receiver(...question);
      if (++asked === 1) await between();
      return receipt;
    };
    return await answerOf(eraseUser({ database, ask: askThen }));
  } finally {
    await link.close();
    await database.end();
  }
}

async function answerOf(erase: Handler): Promise<string> {
  const app = new Hono().post("/", erase).onError((error) => {
    throw error;
  });
  const answer = await app.request("/", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ user_id, who: "kim", reason: "r" }),
  });
  assert.equal(answer.status, 200, await answer.clone().text());
  return (await answer.json()).outcome;
}

/** Another transaction has changed rows that the work then waits for. */
function whileAnother(
  ownerUrl: string,
  changes: string[],
  work: () => Promise<string>,
): Promise<string> {
  return withClient(ownerUrl, async (other) => {
    await other.query("begin");
    for (const change of changes) await other.query(change);
    const working = work();
    working.catch(() => {}); // it may fail before it is awaited
    await until("it waits", async () => await waitingForLocks(ownerUrl) > 0);
    await other.query("commit");
    return await working;
  });
}
