// Each file is applied once, in order, unchanged; and the command reports what is wrong.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { migrate } from "../../migrations/migrate.ts";
import { plantedPassword } from "../../tools/planted.ts";
import { startPostgres } from "../../tools/servers/postgres.ts";
import {
  dropDatabase,
  dropRole,
  serverUrl,
  uniqueName,
  urlOf,
  withClient,
} from "../support/databases.ts";
import { root } from "../../tools/root.ts";
import { makeShop, step, threeFiles } from "./shop.ts";
import { inTime } from "../../tools/servers/wait.ts";

Deno.test("files are applied in the order of their numbers, and only once", async () => {
  await using shop = await makeShop(threeFiles);
  const first = await shop.migrate();
  const second = await shop.migrate();

  assert.deepEqual(await shop.steps(), ["second", "third"]);
  assert.deepEqual(first.map((line) => line.replace(/\d+ ms/, "N ms")), [
    `shop: created the database "${shop.database}"`,
    "shop: applied 0001_start (N ms)",
    "shop: applied 0002_second (N ms)",
    "shop: applied 0003_third (N ms)",
    `shop: created the role "${shop.role}"`,
  ]);
  assert.deepEqual(second, ["shop: up to date at 0003"]);
});

Deno.test("a new file is applied to an existing database", async () => {
  await using shop = await makeShop(threeFiles);
  await shop.migrate();
  await shop.write("0004_fourth.sql", step("fourth"));
  await shop.migrate();
  assert.deepEqual(await shop.steps(), ["second", "third", "fourth"]);
});

Deno.test("eight migrations at once apply each file exactly once", async () => {
  await using shop = await makeShop(threeFiles);
  const said = await Promise.all(Array.from({ length: 8 }, () => shop.migrate()));

  assert.deepEqual(await shop.steps(), ["second", "third"]);
  const applied = said.flat().filter((line) => line.includes("applied"));
  assert.equal(applied.length, 3);
  assert.equal(said.flat().filter((line) => line === "shop: up to date at 0003").length, 7);
});

Deno.test("another migration may create the same role at the same time", async () => {
  await using shop = await makeShop(threeFiles);
  await withClient(urlOf({ database: "postgres" }), async (other) => {
    await other.query("begin");
    await other.query(`create role ${shop.role} login password '${plantedPassword}'`);
    const migrated = shop.migrate();
    await waitsForLock(shop.database);
    await other.query("commit");
    await migrated;
  });
  await withClient(shop.serviceUrl, (service) => service.query("select from steps"));
});

Deno.test("a failed migration leaves nothing, and the earlier ones stay applied", async () => {
  const broken = `${
    step("third")
  }\ncreate table half_done (id integer);\ninsert into nowhere values (1);`;
  await using shop = await makeShop({ ...threeFiles, "0003_third.sql": broken });

  await assert.rejects(shop.migrate(), /"0003_third\.sql" failed at line 3: .*"nowhere"/);
  assert.deepEqual(await shop.steps(), ["second"]);
  assert.deepEqual(await shop.asOwner("select to_regclass('half_done')::text as found"), [
    { found: null },
  ]);

  await shop.write("0003_third.sql", threeFiles["0003_third.sql"]);
  await shop.migrate();
  assert.deepEqual(await shop.steps(), ["second", "third"]);
});

Deno.test("a file that ends its own transaction is refused", async () => {
  await using shop = await makeShop({ ...threeFiles, "0002_second.sql": "commit;" });
  await assert.rejects(shop.migrate(), /"0002_second\.sql" failed: it ends the transaction/);
});

Deno.test("failed grants leave a running service the rights it has", async () => {
  await using shop = await makeShop(threeFiles);
  await shop.migrate();
  await shop.write("grants.sql", "grant select on nowhere to :service;");
  await assert.rejects(shop.migrate(), /"grants\.sql" failed: .*"nowhere"/);
  await withClient(shop.serviceUrl, (service) => service.query("select from steps"));
});

Deno.test("a service without migrations gets an empty database and its role", async () => {
  await using shop = await makeShop({});
  const said = await shop.migrate();
  assert.ok(said.includes("shop: no migrations yet"));
  await withClient(shop.serviceUrl, (client) => client.query("select 1"));
});

Deno.test("the service's url and the owner's must lead to the same database", async () => {
  await using shop = await makeShop(threeFiles);
  const serviceUrl = urlOf({ database: "elsewhere", user: shop.role });
  await assert.rejects(shop.migrate({ serviceUrl }), /leads to the database "elsewhere"/);
});

Deno.test("a migration waits for a server that starts late", async () => {
  await using server = await startPostgres();
  await using shop = await makeShop(threeFiles);
  await server.stop();

  const waiting = Promise.withResolvers<void>();
  const said: string[] = [];
  const migrated = migrate({
    folder: shop.folder,
    ownerUrl: server.url,
    serviceUrl: server.url,
    say: (line) => {
      said.push(line);
      waiting.resolve();
    },
  });
  await waiting.promise;
  await server.start();
  await migrated;
  assert.match(said[0] ?? "", /^shop: waiting for PostgreSQL: .*ECONNREFUSED/);
  assert.ok(said.includes(
    'shop: the service connects as the owner "postgres", so grants do not restrict it',
  ));
});

Deno.test("a migration gives up on a server that never answers", async () => {
  await using shop = await makeShop(threeFiles);
  const nobody = "postgres://owner:topsecret@127.0.0.1:1/shop";
  const migrating = shop.migrate({ ownerUrl: nobody, serviceUrl: nobody, waitMs: 300 });
  await assert.rejects(
    inTime("it gives up", migrating),
    /^Error: PostgreSQL did not answer for 0\.3 s: .*ECONNREFUSED 127\.0\.0\.1:1$/,
  );
});

Deno.test("the command migrates both databases and prints no password", async () => {
  const databases = {
    entitlement: uniqueName("entitlement"),
    notification: uniqueName("notification"),
  };
  const role = uniqueName("role");
  const settings = Object.entries(databases).flatMap(([service, database]) => {
    const name = service.toUpperCase();
    return [
      [`${name}_DATABASE_URL`, urlOf({ database, user: role, password: "top-secret" })],
      [`${name}_MIGRATION_DATABASE_URL`, urlOf({ database })],
    ];
  });
  try {
    const { code, output } = await runCommand(Object.fromEntries(settings));
    assert.equal(code, 0, output);
    assert.match(output, /entitlement: applied 0002_entitlement_audit \(\d+ ms\)/);
    assert.match(
      output,
      new RegExp(`notification: created the database "${databases.notification}"`),
    );
    assert.doesNotMatch(output, /top-secret/);
  } finally {
    for (const database of Object.values(databases)) await dropDatabase(database);
    await dropRole(role);
  }
});

Deno.test("the command names all missing and wrong settings, and prints no password", async () => {
  const { code, output } = await runCommand({
    ENTITLEMENT_MIGRATION_DATABASE_URL: "mysql://owner:top-secret@127.0.0.1/entitlement",
  });
  assert.equal(code, 1);
  assert.match(output, /ENTITLEMENT_DATABASE_URL is required/);
  assert.match(output, /ENTITLEMENT_MIGRATION_DATABASE_URL must be a url/);
  assert.match(output, /NOTIFICATION_DATABASE_URL is required/);
  assert.doesNotMatch(output, /top-secret/);
});

Deno.test("the command leaves out a database whose url is not set, unless its owner is named", async () => {
  const database = uniqueName("only");
  const url = urlOf({ database });
  const ofAccount = { ACCOUNT_DATABASE_URL: url };
  try {
    const { code, output } = await runCommand(ofAccount);
    assert.equal(code, 0, output);
    assert.match(output, /^account: applied 0001_/m);
    for (
      const [name, setting] of [["entitlement", "ENTITLEMENT"], ["notification", "NOTIFICATION"]]
    ) {
      assert.match(
        output,
        new RegExp(`^${name}: left out, because ${setting}_DATABASE_URL is not`, "m"),
      );
    }
    const named = await runCommand({ ...ofAccount, NOTIFICATION_MIGRATION_DATABASE_URL: url });
    assert.equal(named.code, 1);
    assert.match(named.output, /: NOTIFICATION_DATABASE_URL is required$/m);
  } finally {
    await dropDatabase(database);
  }
});

async function runCommand(env: Record<string, string>): Promise<{ code: number; output: string }> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["task", "migrate"],
    cwd: root,
    env,
  }).output();
  const output = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  return { code, output };
}

/** The second session that creates a role waits until the first has committed. */
async function waitsForLock(database: string): Promise<void> {
  const waiting = `
    select from pg_stat_activity
    where datname = $1 and wait_event_type = 'Lock' and query like 'do %'`;
  await withClient(serverUrl, async (observer) => {
    while ((await observer.query(waiting, [database])).rowCount === 0) await sleep(10);
  });
}
