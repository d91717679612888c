// deno task recover makes changes from events, but does not trust every event in the stream.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { EntitlementEventType } from "../../proto/gen/entitlement/v1/entitlement_event_pb.ts";
import { freshDatabase, type TestDatabase } from "../support/databases.ts";
import { ask, settingsOf } from "../support/entitlement.ts";
import { bodyOf, type Event, eventOf, type Message, publish } from "../support/events.ts";
import { runShell } from "../operators/runbook.ts";
import { freshStreamNames, makeStream, natsUrl, type StreamNames } from "../support/streams.ts";

const key = "a key that only the service knows!".replaceAll(" ", "-");

const unsealed = "";

/** The message as the relay publishes it. */
function messageOf(fields: Partial<Event>, sealedBy = key): Message {
  const event = eventOf(fields);
  const granted = event.eventType === EntitlementEventType.GRANTED;
  const body = bodyOf(event);
  const headers: Record<string, string> = {
    "Nats-Msg-Id": event.eventId,
    event_type: granted ? "EntitlementGranted" : "EntitlementRevoked",
  };
  if (sealedBy !== unsealed) headers["seal"] = sealOf(body, sealedBy);
  return { body, headers };
}

const sealOf = (body: Uint8Array, by: string) =>
  createHmac("sha256", by).update("kenri event\n").update(body).digest("hex");

interface Place extends AsyncDisposable {
  database: TestDatabase;
  names: StreamNames;
}

async function placeWith(messages: Message[]): Promise<Place> {
  const database = await freshDatabase("entitlement");
  const names = freshStreamNames();
  await makeStream(natsUrl, names);
  for (const message of messages) await publish(natsUrl, names.subject, [message]);
  return { database, names, [Symbol.asyncDispose]: () => database.drop() };
}

function recover(
  { database, names }: Place,
  { keys = key, flags = "", code = 0 }: { keys?: string; flags?: string; code?: number } = {},
): Promise<string> {
  const settings = {
    ...settingsOf(database.serviceUrl, names),
    ENTITLEMENT_MIGRATION_DATABASE_URL: database.ownerUrl,
    ...(keys === "" ? {} : { ENTITLEMENT_SEAL_KEY: keys }),
  };
  return runShell(`deno task --quiet recover ${flags}`, settings, code);
}

async function rightsIn({ database }: Place): Promise<string[]> {
  const rows = await ask<{ text: string }>(
    database.ownerUrl,
    `select concat_ws(' ', user_id, stock_keeping_unit, status, version) as text
     from entitlements order by user_id`,
  );
  return rows.map(({ text }) => text);
}

Deno.test("an event that somebody else published grants nothing", async () => {
  const wrongKey = "k".repeat(32);
  const real = messageOf({ userId: "real" });
  await using place = await placeWith([
    messageOf({ userId: "no-seal" }, unsealed),
    messageOf({ userId: "other-key" }, wrongKey),
    {
      ...messageOf({ userId: "other-body" }),
      headers: { ...messageOf({ userId: "other-body" }).headers, seal: real.headers?.["seal"] },
    } as Message,
    { body: bodyOf(eventOf({ userId: "bare" })) },
    { ...messageOf({ userId: "other-id" }), headers: { "Nats-Msg-Id": crypto.randomUUID() } },
    { body: new TextEncoder().encode("no event") },
    real,
    messageOf({ userId: "real", version: 2, eventType: EntitlementEventType.REVOKED }),
    messageOf({ userId: "real", version: 3 }, unsealed),
  ]);
  const said = await recover(place, { code: 1 });
  assert.deepEqual(await rightsIn(place), ["real book REVOKED 2"]);
  assert.match(said, /9 events were read, 2 changes were recovered/);
  assert.match(said, /"no-seal" "book" version 1: it has no seal/);
  assert.match(said, /"other-key" "book" version 1: its seal was not made with the key/);
  assert.match(said, /"real" "book" version 3: it has no seal/);
  assert.match(said, /3 changes can't be proven and were not recovered/);
  assert.doesNotMatch(said, /bare|other-id|k{32}/);
});

Deno.test("an unproven change is recovered when it is accepted, one by one or all at once", async () => {
  const ids = Array.from({ length: 3 }, () => crypto.randomUUID());
  await using place = await placeWith(
    ids.map((eventId, at) => messageOf({ eventId, userId: `user-${at}` }, unsealed)),
  );
  await recover(place, { flags: `--accept ${ids[1]}`, code: 1 });
  assert.deepEqual(await rightsIn(place), ["user-1 book ACTIVE 1"]);
  assert.match(await recover(place, { flags: "--accept all" }), /2 changes were recovered/);
  assert.equal((await rightsIn(place)).length, 3);
  assert.match(await recover(place), /\b0 changes were recovered/);
  for (const flags of ["--accept", "--force"]) {
    assert.match(await recover(place, { flags, code: 1 }), /Usage: deno task recover/);
  }
});

Deno.test("a version after a gap is recovered only if the missing one comes later in the stream", async () => {
  await using place = await placeWith([
    messageOf({ userId: "gap", version: 1 }),
    messageOf({ userId: "gap", version: 3 }),
    messageOf({ userId: "late", version: 2 }),
    messageOf({ userId: "late", version: 3 }),
    messageOf({ userId: "late", version: 1 }), // sent back after its failure
  ]);
  const said = await recover(place, { code: 1 });
  assert.deepEqual(await rightsIn(place), ["gap book ACTIVE 1", "late book ACTIVE 3"]);
  assert.match(said, /4 changes were recovered/);
  assert.match(said, /"gap" "book" version 3: a version before it is missing/);
  assert.match(await recover(place, { flags: "--accept all" }), /1 changes were recovered/);
  assert.deepEqual(await rightsIn(place), ["gap book ACTIVE 3", "late book ACTIVE 3"]);
});

Deno.test("without a key nothing is proven; an earlier key proves what was sealed with it", async () => {
  await using place = await placeWith([messageOf({})]);
  assert.match(await recover(place, { keys: "", code: 1 }), /ENTITLEMENT_SEAL_KEY is not set/);
  assert.deepEqual(await rightsIn(place), []);
  const said = await recover(place, { keys: "short", code: 1 });
  assert.match(said, /ENTITLEMENT_SEAL_KEY must be random text of 32 or more/);
  assert.doesNotMatch(said, /"short"/);
  await recover(place, { keys: `${"n".repeat(40)},${key}` });
  assert.deepEqual(await rightsIn(place), ["ann book ACTIVE 1"]);
});

Deno.test("a name in an event can't control the terminal", async () => {
  await using place = await placeWith([
    messageOf({ userId: "\u001b[2Jann\u009b\u202e" }, unsealed),
  ]);
  const said = await recover(place, { code: 1 });
  assert.doesNotMatch(said, /[^\n\x20-\x7e]/);
  assert.match(said, /"\\u001b\[2Jann\\u\{9b\}\\u\{202e\}"/);
});
