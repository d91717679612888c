// Both services together, as their users see them: from the change over HTTP to the inbox.
import assert from "node:assert/strict";
import { aggregateKeyOf } from "../../proto/entitlement/aggregate_key.ts";
import { type Answer, call, post } from "../support/api.ts";
import { ask, startEntitlement } from "../support/entitlement.ts";
import {
  freshPlace,
  notificationsOf,
  settingsOf,
  startNotification,
  untilSent,
} from "../support/notification.ts";
import { assertInOrder, sendsIn } from "../support/sends.ts";
import { type ServiceProcess, startService } from "../../tools/servers/service_process.ts";

const requests = 1_000;
const clients = 32;
const users = Array.from({ length: 25 }, (_, i) => `user-${i}`);
const skus = ["book", "film", "song"];

Deno.test("every change over HTTP becomes one notification, sent in order and shown in the inbox", async () => {
  await using entitlement = await startEntitlement();
  await using second = await startService("entitlement", entitlement.settings);
  const { stream, subject } = entitlement;
  await using place = await freshPlace({ stream, subject });
  const debug = { NOTIFICATION_DEBUG_ENABLED: "true" };
  await using one = await startNotification(place, debug);
  await using other = await startService("notification", { ...settingsOf(place), ...debug });

  const changes = await changeConcurrently([entitlement.url, second.url]);
  await untilSent(place, changes.length);

  const [outbox] = await entitlement.rows<{ count: number }>(
    "select count(*)::int as count from outbox_events",
  );
  assert.equal(outbox?.count, changes.length);
  const rows = await notificationsOf(place);
  assert.deepEqual(
    rows.map(({ aggregate_key, version, type, status }) => ({
      aggregate_key,
      version,
      type,
      status,
    }))
      .toSorted(byKeyAndVersion),
    changes.map((change) => ({ ...change, status: "SENT" })).toSorted(byKeyAndVersion),
  );
  assert.equal(await deadLettersIn(place.ownerUrl), 0);
  const sends = [one, other].map(({ log }) => sendsIn(log));
  assert.equal(sends.flat().length, changes.length, "each was sent once");
  assertInOrder(sends, rows.map(({ aggregate_key: key, version }) => ({ key, version })));
  for (const user of users) {
    const shown = await inboxOf(other, user);
    const expected = rows.filter(({ user_id }) => user_id === user);
    assert.deepEqual(shown.toSorted(), expected.map(({ event_id }) => event_id).toSorted());
  }
  for (const service of [entitlement.service, second, one, other]) {
    assert.equal(await service.stop(), 0);
    assert.deepEqual(service.log.filter(({ level }) => level === "error"), []);
  }
});

interface Change {
  aggregate_key: string;
  version: number;
  type: string;
}

// Clients grant and revoke the same items at the same time. Every third request is sent to two
// replicas at once, and every fifth is repeated later.
async function changeConcurrently(urls: string[]): Promise<Change[]> {
  const answers: { action: string; answer: Answer }[] = [];
  let next = 0;
  const client = async () => {
    for (let i = next++; i < requests; i = next++) {
      const action = Math.random() < 0.5 ? "grants" : "revokes";
      const fields = {
        user_id: users[i % users.length],
        stock_keeping_unit: skus[Math.floor(Math.random() * skus.length)],
        reason: "purchase",
        purchase_id: `p-${i}`,
      };
      const send = (nth: number) =>
        post(urls[nth % urls.length] as string, action, fields, `key-${i}`);
      const sent = await Promise.all(i % 3 === 0 ? [send(i), send(i + 1)] : [send(i)]);
      if (i % 5 === 0) sent.push(await send(i + 1));
      const [answer] = sent as [Answer, ...Answer[]];
      for (const repeat of sent) {
        assert.deepEqual([repeat.status, repeat.text], [answer.status, answer.text]);
      }
      assert.ok(answer.status === 200 || answer.status === 409, answer.text);
      answers.push({ action, answer });
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  assert.equal(answers.length, requests);
  return answers.filter(({ answer }) => answer.status === 200).map(({ action, answer }) => ({
    aggregate_key: aggregateKeyOf(answer.json.user_id, answer.json.stock_keeping_unit),
    version: answer.json.version,
    type: action === "grants" ? "EntitlementGranted" : "EntitlementRevoked",
  }));
}

function byKeyAndVersion(a: Change, b: Change): number {
  return a.aggregate_key.localeCompare(b.aggregate_key) || a.version - b.version;
}

async function deadLettersIn(ownerUrl: string): Promise<number> {
  const [found] = await ask<{ count: number }>(
    ownerUrl,
    `select ((select count(*) from notification_dlq)
       + (select count(*) from notification_nats_dlq))::int as count`,
  );
  return found?.count ?? NaN;
}

async function inboxOf({ url }: ServiceProcess, user: string): Promise<string[]> {
  const events: string[] = [];
  for (let cursor = ""; cursor !== undefined;) {
    const query = `limit=20${cursor && `&cursor=${cursor}`}`;
    const { json } = await call(`${url}/debug/notification/inbox/${user}?${query}`);
    events.push(...json.notifications.map(({ event_id }: { event_id: string }) => event_id));
    cursor = json.next_cursor;
  }
  return events;
}
