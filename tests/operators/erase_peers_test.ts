// Erasing a user from what the peers of their matches received.
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { ask } from "../support/entitlement.ts";
import {
  matchmakingEventOf,
  matchmakingMessageOf,
  matchmakingPlace,
  publishMatchmaking,
  startWithMatchmaking,
} from "../support/matchmaking_events.ts";
import { freshPlace, untilSent } from "../support/notification.ts";
import { operate } from "../support/stack.ts";
import { insertEndpoint } from "./order_rows.ts";

const [ann, bob] = ["ann:the%erased", "bob-the-peer"];
const debug = { NOTIFICATION_DEBUG_ENABLED: "true" };
const tables = [
  ...["notifications", "notification_dlq", "notification_nats_dlq"],
  ...["outbox_orders", "order_attempts", "idempo_ledger", "operations"],
];

/** The tables in which something leads to the user. */
async function traces(ownerUrl: string, user: string): Promise<string[]> {
  const written = [user, user.replaceAll("%", "%25").replaceAll(":", "%3A")];
  const found = await Promise.all(tables.map(async (name) => {
    const rows = await ask(
      ownerUrl,
      `select from ${name} row
       where position($1 in row::text) > 0 or position($2 in row::text) > 0`,
      written,
    );
    return rows.length > 0 ? [name] : [];
  }));
  const copies = await ask(
    ownerUrl,
    "select from notification_nats_dlq where position(convert_to($1, 'UTF8') in message_body) > 0",
    [user],
  );
  return [...found.flat(), ...copies.length > 0 ? ["copies"] : []];
}

Deno.test("nothing leads to an erased user from their peers, whoever of them is erased first", async () => {
  await using place = await freshPlace();
  const { ownerUrl } = place;
  await using service = await startWithMatchmaking(place, debug);
  await insertEndpoint(ownerUrl, { state: "PAUSED" }); // the webhooks are parked
  const ofAnn = matchmakingEventOf({ user_id: ann, peer_user_ids: [bob, "cid"] });
  const { match_id } = ofAnn;
  const ofBob = matchmakingEventOf({ user_id: bob, match_id, peer_user_ids: ["cid", ann] });
  const other = matchmakingEventOf({ user_id: bob, peer_user_ids: ["cid"] });
  const messages = [ofAnn, ofBob, other].map(matchmakingMessageOf);
  await publishMatchmaking(place, messages);
  await untilSent(place, 3);
  await ask(
    ownerUrl,
    `insert into notification_dlq (notification_id, event_id, payload_json, error_message)
     select notification_id, event_id, payload_json, 'no' from notifications where user_id = $1`,
    [bob],
  );
  await ask(
    ownerUrl,
    `insert into notification_nats_dlq
       (advisory_id, kind, stream, consumer, stream_seq, advised_at, message_subject, message_body)
     values ('a', 'MAX_DELIVERIES', 's', 'c', 1, now(), $1, $2)`,
    [matchmakingPlace(place).subject, Buffer.from(messages[1]?.body ?? [])],
  );
  const before = ["notifications", "notification_dlq", "outbox_orders", "copies"];
  assert.deepEqual(await traces(ownerUrl, ann), before);

  const asked = { who: "kim", reason: "case 7" };
  const erase = (user_id: string) =>
    operate(service.url, "/operations/notification/erase-user", { user_id, ...asked });
  await ask(
    ownerUrl,
    `update notifications set status = 'PENDING', next_retry_at = now() + interval '1 hour'
     where user_id = $1`,
    [bob],
  );
  assert.equal((await erase(ann)).outcome, "WAITING");
  await ask(ownerUrl, "update notifications set status = 'SENT'");

  const { outcome, operation_id } = await erase(ann);
  assert.equal(outcome, "ERASED");
  assert.deepEqual(await traces(ownerUrl, ann), []);
  const peersOf = async (event: { event_id: string }) =>
    (await ask<{ peers: string[] }>(
      ownerUrl,
      `select payload_json->'peer_user_ids' as peers from notifications where event_id = $1`,
      [event.event_id],
    ))[0]?.peers;
  const erasedAnn = `erased-${operation_id}`;
  assert.deepEqual(await peersOf(ofBob), ["cid", erasedAnn]);
  assert.deepEqual(await peersOf(other), ["cid"]);
  const keys = "select aggregate_key from notifications where user_id = $1";
  assert.deepEqual(await ask(ownerUrl, keys, [erasedAnn]), [
    { aggregate_key: `matchmaking:${erasedAnn}:${ofAnn.ticket_id}` },
  ]);
  await erase(bob);
  assert.deepEqual(await traces(ownerUrl, bob), []);
  assert.equal((await peersOf(ofAnn))?.length, 2);
});
