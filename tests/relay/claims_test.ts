// Which rows a claim finds, and how it changes the rows that it leases.
import assert from "node:assert/strict";
import { outbox } from "../../entitlement/outbox.ts";
import { openFresh } from "../support/databases.ts";
import { ask } from "../support/entitlement.ts";
import { insertEvents, publishAll } from "../support/outbox.ts";

const lease = { worker: "test", leaseMs: 60_000 };
const line = (versions: number) =>
  Array.from({ length: versions }, (_, i) => ({ key: "ann:book", version: i + 1 }));

const blocked: [string, string][] = [
  ["has to be tried again later", "next_retry_at = now() + interval '1 hour'"],
  ["is leased", "status = 'IN_FLIGHT', lease_until = now() + interval '1 hour'"],
];

for (const [why, columns] of blocked) {
  Deno.test(`rows behind one of their key that ${why} take no place in a batch, however many they are`, async () => {
    await using place = await openFresh("entitlement");
    const [first] = await insertEvents(place.ownerUrl, line(30));
    const [other] = await insertEvents(place.ownerUrl, [{ key: "bob:book", version: 1 }]);
    await ask(place.ownerUrl, `update outbox_events set ${columns} where event_id = $1`, [first]);
    const claimed = await outbox.claim(place.database, lease, 10);
    assert.deepEqual(claimed.map(({ id }) => id), [other]);
  });
}

Deno.test("a claim clears the last error, and taking over an expired lease counts as an attempt", async () => {
  await using place = await openFresh("entitlement");
  await insertEvents(place.ownerUrl, line(1));
  const [first] = await outbox.claim(place.database, lease, 1);
  assert.deepEqual([first?.attempts, first?.takenOver], [0, false]);
  await ask(
    place.ownerUrl,
    "update outbox_events set lease_until = now() - interval '1 second', last_error = 'before'",
  );
  const [second] = await outbox.claim(place.database, lease, 1);
  assert.deepEqual([second?.attempts, second?.takenOver], [1, true]);
  const [row] = await ask(
    place.ownerUrl,
    `select attempt_count, last_error, locked_by, locked_at is not null as is_locked,
       lease_until > now() + interval '50 seconds' as is_leased, claim_token::text as token
     from outbox_events`,
  );
  assert.deepEqual(row, {
    attempt_count: 1,
    last_error: null,
    locked_by: "test",
    is_locked: true,
    is_leased: true,
    token: second?.token,
  });
  assert.notEqual(first?.token, second?.token);
});

Deno.test("a row that fails for good counts an attempt only if it was tried", async () => {
  await using place = await openFresh("entitlement");
  const ids = await insertEvents(place.ownerUrl, [...line(1), { key: "bob:book", version: 1 }]);
  const rows = await outbox.claim(place.database, lease, 2);
  await outbox.settle(
    place.database,
    rows.map((row, i) => ({ row, kind: "failed", error: "no", attempted: i === 0 })),
  );
  const found = await ask<{ attempt_count: number; status: string }>(
    place.ownerUrl,
    "select attempt_count, status from outbox_events where event_id = any($1) order by created_at",
    [ids],
  );
  assert.deepEqual(found, [
    { attempt_count: 1, status: "FAILED" },
    { attempt_count: 0, status: "FAILED" },
  ]);
});

// These claims are between two polls: the next scan of the whole index is an hour away.
const commits: [string, number][] = [["a claim found a younger one", 1], [
  "claims found nothing",
  0,
]];

for (const [what, younger] of commits) {
  Deno.test(`an event whose commit was slow is found although ${what} meanwhile`, async () => {
    await using place = await openFresh("entitlement");
    const { database, ownerUrl } = place;
    const claims = outbox.claimRepeatedly(database, {
      ...lease,
      batchSize: 10,
      pollIntervalMs: 3_600_000,
    });
    const claim = async (limit: number) => (await claims(limit)).rows;
    for (let i = 0; i < younger; i++) await insertedAgo(ownerUrl, "young:book", 0);
    const found = await claim(10);
    assert.equal(found.length, younger);
    await publishAll(database, found);
    const id = await insertedAgo(ownerUrl, "slow:book", 3);
    assert.deepEqual((await claim(10)).map((row) => row.id), [id]);
  });
}

async function insertedAgo(ownerUrl: string, key: string, seconds: number): Promise<string> {
  const [id = ""] = await insertEvents(ownerUrl, [{ key, version: 1 }]);
  await ask(
    ownerUrl,
    "update outbox_events set created_at = now() - make_interval(secs => $2) where event_id = $1",
    [id, seconds],
  );
  return id;
}
