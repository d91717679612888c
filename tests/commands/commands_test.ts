// The commands of shared/commands, with a command whose tables are not those of any service.
import assert from "node:assert/strict";
import { commandBatch, commit } from "../../shared/commands/command.ts";
import { storeAnswers } from "../../shared/commands/stored_answers.ts";
import { lastTogether, transaction } from "../../shared/postgres/postgres.ts";
import { changeOf, commitChanges } from "../changes/change.ts";
import { ask } from "../support/entitlement.ts";
import type { Opened } from "../support/databases.ts";
import { openWallets, payment, payments } from "./payments.ts";

Deno.test("inputs that are committed together are each decided alone, and get all of their effects", async () => {
  await using place = await openWallets("ann", "bob", "eve");
  const given = [
    payment({ from: "bob", to: "eve", amount: 30 }),
    payment({ from: "nobody" }),
    payment({ from: "ann", amount: 101 }),
  ];
  const { result } = await commit(place.database, payments, given);
  assert.deepEqual(result.map(({ status, outcome }) => [status, outcome]), [
    [201, "applied"],
    [409, "state_conflict"],
    [409, "state_conflict"],
  ]);
  assert.deepEqual(await balances(place), { ann: 100, bob: 70, eve: 130 });
  assert.deepEqual(await rows(place, "payments"), [{
    wallet: "bob",
    amount: "30",
    note: "a book",
  }]);
  assert.equal((await rows(place, "idempotency_keys")).length, 3);
});

Deno.test("a repeated input has no effects, and gets the stored answer, also that of a refusal", async () => {
  await using place = await openWallets("ann");
  const given = [payment(), payment({ from: "nobody" })];
  const { result: first } = await commit(place.database, payments, given);
  await ask(place.ownerUrl, "insert into wallets values ('nobody', 100)");
  const { result: second } = await commit(place.database, payments, given);
  assert.deepEqual(second.map(({ outcome }) => outcome), ["replayed", "replayed"]);
  assert.deepEqual(second[1]?.body, first[1]?.body);
  assert.deepEqual(await balances(place), { ann: 90, nobody: 100 });
});

Deno.test("what must be shown only once is not in the answer to a repeated request", async () => {
  await using place = await openWallets("ann");
  const given = [payment()];
  const bodies = [];
  for (const _ of [1, 2, 3]) {
    const { result: [answer] } = await commit(place.database, payments, given);
    bodies.push(JSON.parse(answer?.body ?? ""));
  }
  const { receipt, ...rest } = bodies[0];
  assert.match(receipt, /^[0-9a-f-]{36}$/);
  assert.deepEqual(bodies.slice(1), [rest, rest]);
});

Deno.test("a key that another command has used is refused, and nothing is changed", async () => {
  await using place = await openWallets("ann");
  const options = { idempotencyTtlMs: 60_000 };
  await commit(place.database, payments, [payment({ idempotencyKey: "key-1" })]);
  await commitChanges(place.database, [changeOf({ idempotencyKey: "key-2" })], options);
  const change = changeOf({ idempotencyKey: "key-1", userId: "bob" });
  const { result: [changed] } = await commitChanges(place.database, [change], options);
  const { result: [paid] } = await commit(place.database, payments, [
    payment({ idempotencyKey: "key-2" }),
  ]);
  for (const answer of [changed, paid]) {
    assert.deepEqual([answer?.status, answer?.outcome], [409, "key_conflict"]);
    assert.equal(JSON.parse(answer?.body ?? "").code, "IDEMPOTENCY_KEY_CONFLICT");
  }
  assert.deepEqual(await balances(place), { ann: 90 });
  assert.deepEqual(await ask(place.ownerUrl, "select user_id from entitlements"), [
    { user_id: "ann" },
  ]);
  assert.equal((await rows(place, "idempotency_keys")).length, 2);
});

Deno.test("an input whose effect fails is the only one that fails, and all of its effects are undone", async () => {
  await using place = await openWallets("ann", "bob", "eve");
  const batch = commandBatch(place.database, payments);
  const [first, bad, last] = await Promise.allSettled([
    batch.add(payment({ from: "ann" })),
    batch.add(payment({ from: "bob", note: "", idempotencyKey: "bad" })),
    batch.add(payment({ from: "eve" })),
  ]);
  assert.deepEqual([first.status, bad.status, last.status], ["fulfilled", "rejected", "fulfilled"]);
  assert.match(`${bad.status === "rejected" && bad.reason}`, /payments_note_check/);
  assert.deepEqual(await balances(place), { ann: 90, bob: 100, eve: 90 });
  const keys = await ask(place.ownerUrl, "select from idempotency_keys where idem_key = 'bad'");
  assert.equal(keys.length, 0, "its key can be used again");
});

Deno.test("an input whose answer is stored in its own row is carried out once, and only by the holder of the row", async () => {
  await using place = await openWallets("ann");
  const [token, other] = [crypto.randomUUID(), crypto.randomUUID()];
  const orders = await ask<{ id: string }>(
    place.ownerUrl,
    "insert into standing_orders (id, claim_token) " +
      "select gen_random_uuid(), $1 from generate_series(1, 3) returning id",
    [token],
  );
  const [mine = "", lost = "", refused = ""] = orders.map(({ id }) => id);
  const given = [
    payment({ order: { id: mine, token } }),
    payment({ from: "nobody", order: { id: refused, token } }),
    payment({ from: "bob", order: { id: lost, token: other } }),
  ];
  const { result } = await commit(place.database, payments, given);
  const again = await commit(place.database, payments, given);
  const codes = [...result, ...again.result].map(({ body }) => JSON.parse(body).code);
  const once = [undefined, "TOO_LITTLE", "NOT_HELD"];
  assert.deepEqual(codes, [...once, "NOT_HELD", "NOT_HELD", "NOT_HELD"]);
  const stored = await ask<{ id: string; outcome: string | null }>(
    place.ownerUrl,
    "select id, outcome from standing_orders",
  );
  assert.deepEqual(
    new Map(stored.map(({ id, outcome }) => [id, outcome])),
    new Map([
      [mine, result[0]?.body],
      [refused, result[1]?.body],
      [lost, null],
    ]),
  );
  assert.deepEqual(await balances(place), { ann: 90 });
  assert.equal((await rows(place, "idempotency_keys")).length, 0);
});

Deno.test("commands that lock the same names in different orders take turns and never deadlock", async () => {
  await using place = await openWallets("ann", "bob");
  const others = { ...payments, name: "others" };
  const committed = await Promise.all(Array.from({ length: 60 }, (_, i) => {
    const [from, to] = i % 3 === 0 ? ["ann", "bob"] as const : ["bob", "ann"] as const;
    const given = payment({ from, to, amount: 7 });
    return commit(place.database, i % 2 === 0 ? payments : others, [given]);
  }));
  const applied = committed.filter(({ result: [answer] }) => answer?.outcome === "applied").length;
  assert.equal((await rows(place, "payments")).length, applied);
  const { ann = 0, bob = 0 } = await balances(place);
  assert.ok(ann >= 0 && bob >= 0 && ann + bob === 200, `${ann}, ${bob}`);
});

const folded: typeof payments = {
  ...payments,
  fold: {
    subjectOf: ({ from }) => `wallet ${from}`,
    after: (earlier, found) => {
      const paid = earlier.reduce(
        (sum, effect) => effect.kind === "record" ? sum + effect.amount : sum,
        0,
      );
      return { ...found, balance: found.balance === null ? null : found.balance - paid };
    },
  },
};

Deno.test("inputs with one subject share a commit, and each is decided after the ones before it", async () => {
  await using place = await openWallets("ann", "bob");
  const given = [30, 80, 70, 1].map((amount) => payment({ from: "ann", amount }));
  const { result } = await commit(place.database, folded, [payment({ from: "bob" }), ...given]);
  assert.deepEqual(result.map(({ status }) => status), [201, 201, 409, 201, 409]);
  assert.deepEqual(await balances(place), { ann: 0, bob: 90 });
});

Deno.test("of many inputs with one subject none waits for a commit of its own", async () => {
  await using place = await openWallets("ann");
  const batch = commandBatch(place.database, folded);
  const added = Array.from({ length: 100 }, () => batch.add(payment({ amount: 1 })));
  assert.equal(batch.waiting, 100);
  await Promise.all(added);
  assert.deepEqual(await balances(place), { ann: 0 });
  const commits = await ask(place.ownerUrl, "select distinct xmin::text from payments");
  assert.equal(commits.length, 1);
});

Deno.test("an answer under a key that has one undoes its commit", async () => {
  await using place = await openWallets("ann");
  const stored = { status: 200, body: "{}", outcome: "applied" } as const;
  const answers = [{ identity: { key: "key-1", request: ["PAY"] as const }, answer: stored }];
  const twice = transaction(
    place.database,
    (tx) =>
      lastTogether(tx, [storeAnswers(tx, answers, 60_000), storeAnswers(tx, answers, 60_000)]),
  );
  await assert.rejects(twice, /"Another answer was stored under a key that was locked"/);
  assert.deepEqual(await rows(place, "idempotency_keys"), []);
});

async function balances({ ownerUrl }: Opened): Promise<Record<string, number>> {
  const wallets = await ask<{ name: string; balance: string }>(ownerUrl, "select * from wallets");
  return Object.fromEntries(wallets.map(({ name, balance }) => [name, Number(balance)]));
}

function rows({ ownerUrl }: Opened, table: string): Promise<unknown[]> {
  return ask(ownerUrl, `select * from ${table}`);
}
