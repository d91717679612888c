// `ops points verify`: it finds each way in which balances, transactions, audit and reservations can
// disagree, and nothing in a sound database, on one page or on many.
import assert from "node:assert/strict";
import { Hono } from "hono";
import { verifyPoints } from "../../entitlement/operators/points/verify.ts";
import type { PointsVerified } from "../../entitlement/operators/points/verify.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { ask, type Entitlement, startEntitlement } from "../support/entitlement.ts";
import { until } from "../../tools/servers/wait.ts";
import { ops } from "./ops.ts";
import { grantPoints, reserve, spendPoints } from "../support/points.ts";

const debug = { ENTITLEMENT_DEBUG_ENABLED: "true" };
const notification = { url: "http://127.0.0.1:1" };

// Ann has two units, a spend and a reservation that is done; bob has one transaction.
async function startWithPoints(): Promise<Entitlement> {
  const kenri = await startEntitlement(debug);
  const { url } = kenri;
  for (const amount of [10, 20, 30]) await grantPoints(url, { point_amount: amount });
  await spendPoints(url, { point_amount: 5 });
  await grantPoints(url, { unit: "gems" });
  await grantPoints(url, { user_id: "bob" });
  await reserve(url);
  await until("it is done", async () => {
    const rows = await kenri.rows("select from point_reservations where status = 'DONE'");
    return rows.length === 1;
  });
  return kenri;
}

async function problemsIn(kenri: Entitlement, user?: string): Promise<string[]> {
  const args = user === undefined ? [] : ["--user", user];
  const { code, output } = await ops(
    { entitlement: kenri, notification },
    ...["points", "verify", ...args, "--json"],
  );
  const { problems } = JSON.parse(output);
  assert.equal(code, problems.length > 0 ? 1 : 0, output);
  return problems.map((problem: Record<string, unknown>) =>
    `${problem["kind"]} ${problem["user_id"]} ${problem["unit"]} ${problem["version"]}`
  );
}

const damages: Record<string, { does: string; finds: string[] }> = {
  "a balance": {
    does: "update point_root set balance = balance + 1 where unit = 'gems'",
    finds: ["BALANCE ann gems 1"],
  },
  "a version": {
    does: "update point_root set version = 2 where unit = 'gems'",
    finds: ["BALANCE ann gems 2"],
  },
  "a removed transaction": {
    does:
      "delete from point_transactions where user_id = 'ann' and unit = 'points' and version = 2",
    finds: ["GAP ann points 3"],
  },
  "the last transaction removed": {
    does: "delete from point_transactions where user_id = 'bob'",
    finds: ["BALANCE bob points 1"],
  },
  "points of a transaction": {
    does: "update point_transactions set point_amount = 21 where point_amount = 20",
    finds: ["SUM ann points 2"],
  },
  "an added transaction": {
    does: `insert into point_transactions
      select gen_random_uuid(), 'other', user_id, unit, kind, 1, balance_after + 1, 2, source,
        source_id, null, now()
      from point_transactions
      where user_id = 'bob'`,
    finds: ["EXTRA bob points 2"],
  },
  "a removed balance": {
    does: "delete from point_root where user_id = 'bob'",
    finds: ["EXTRA bob points 1"],
  },
  "a removed audit row": {
    does: "delete from entitlement_audit where user_id = 'bob'",
    finds: ["AUDIT bob points 1"],
  },
  "another amount in the audit": {
    does: `update entitlement_audit set detail = detail || '{"point_amount": 11}'
      where user_id = 'bob'`,
    finds: ["AUDIT bob points 1"],
  },
  "a reservation that points to another transaction": {
    does: "update point_reservations set transaction_id = gen_random_uuid()",
    finds: ["RESERVATION ann points null"],
  },
  "a balance below zero": {
    does: `alter table point_root drop constraint point_root_balance_check;
      update point_root set balance = -1 where user_id = 'bob'`,
    finds: ["NEGATIVE bob points 1"],
  },
};

Deno.test("the points of a service that runs agree, in all and of one user", async () => {
  await using kenri = await startWithPoints();
  assert.deepEqual(await problemsIn(kenri), []);
  const { output } = await ops({ entitlement: kenri, notification }, "points", "verify");
  assert.match(output, /balances +3\ntransactions +7\nreservations done +1\n\nAll points agree\./);
  const one = await ops({ entitlement: kenri, notification }, "points", "verify", "--user", "bob");
  assert.match(one.output, /balances +1\ntransactions +1\nreservations done +0/);
});

Deno.test("each disagreement is found and named, in all and of one user", async () => {
  await using kenri = await startWithPoints();
  for (const [what, { does, finds }] of Object.entries(damages)) {
    const backup = await tablesOf(kenri);
    await kenri.rows(does);
    assert.deepEqual(await problemsIn(kenri), finds, what);
    const user = finds[0]?.split(" ")[1];
    assert.deepEqual(await verifyInPages(kenri, user), finds, `${what}, of ${user}`);
    await backup.restore();
  }
  assert.deepEqual(await problemsIn(kenri), []);
});

// Without `ops`, because the audit chains of a user are not what is damaged here.
async function verifyInPages(kenri: Entitlement, user: string | undefined): Promise<string[]> {
  const database = openDatabase(kenri.database.serviceUrl, "test");
  const app = new Hono().get("/", verifyPoints(database, 1));
  const found: string[] = [];
  let cursor: string | undefined;
  let pages = 0;
  do {
    const query = new URLSearchParams({
      ...(user === undefined ? {} : { user_id: user }),
      ...(cursor === undefined ? {} : { cursor }),
    });
    const page: PointsVerified = await (await app.request(`/?${query}`)).json();
    found.push(
      ...page.problems.map(({ kind, user_id, unit, version }) =>
        `${kind} ${user_id} ${unit} ${version}`
      ),
    );
    cursor = page.next_cursor;
    pages++;
  } while (cursor !== undefined);
  await database.end();
  assert.ok(pages > 3, "one row on each page");
  return found;
}

async function tablesOf(kenri: Entitlement) {
  const { ownerUrl } = kenri.database;
  const tables = ["point_root", "point_transactions", "entitlement_audit"];
  for (const table of tables) {
    await ask(ownerUrl, `create table kept_${table} as select * from ${table}`);
  }
  const [{ id }] = await kenri.rows<{ id: string }>(
    "select transaction_id as id from point_reservations",
  ) as [{ id: string }];
  return {
    async restore(): Promise<void> {
      for (const table of tables) {
        await ask(ownerUrl, `delete from ${table}`);
        await ask(ownerUrl, `insert into ${table} select * from kept_${table}`);
        await ask(ownerUrl, `drop table kept_${table}`);
      }
      await ask(ownerUrl, "update point_reservations set transaction_id = $1", [id]);
    },
  };
}
