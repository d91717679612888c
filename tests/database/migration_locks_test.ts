// While services run, a migration does not wait long for a lock, and needs none to build an index.
import assert from "node:assert/strict";
import { withClient } from "../support/databases.ts";
import { makeShop, threeFiles } from "./shop.ts";
import { inTime, until } from "../../tools/servers/wait.ts";

const concurrently = `-- Without a transaction, so that steps can be written meanwhile.
drop index concurrently if exists steps_by_step;
create unique index concurrently steps_by_step on steps (step);
`;

Deno.test("a migration that can't get its lock steps back, and is applied later", async () => {
  await using shop = await makeShop(threeFiles);
  await shop.migrate();
  await shop.write("0004_wider.sql", "alter table steps add column note text;");
  const said: string[] = [];
  await withClient(shop.serviceUrl, async (holder) => {
    await holder.query("begin");
    await holder.query("select from steps");
    const migrated = shop.migrate({ say: (line) => said.push(line) });
    await until("it has stepped back", () => said.length > 0);
    // If the migration waited for its lock, this would wait behind it.
    assert.deepEqual(await inTime("others go on", shop.steps()), ["second", "third"]);
    await holder.query("commit");
    await inTime("it is applied", migrated);
  });
  assert.equal(said[0], "shop: 0004_wider needs a lock that a transaction holds: trying again");
  assert.match(said.at(-1) ?? "", /applied 0004_wider/);
});

Deno.test("an index is built while a transaction that has written to the table stays open", async () => {
  await using shop = await makeShop(threeFiles);
  await shop.migrate();
  await shop.write("0004_index.sql", concurrently);
  await withClient(shop.serviceUrl, async (writer) => {
    await writer.query("begin");
    await writer.query("insert into steps (step) values ('begun')");
    const migrated = shop.migrate();
    await until("the index waits for the transaction", async () => {
      const waiting = await shop.asOwner("select from pg_locks where not granted");
      return waiting.length > 0;
    });
    await withClient(shop.serviceUrl, async (other) => {
      await inTime("others write", other.query("insert into steps (step) values ('other')"));
    });
    await writer.query("commit");
    await inTime("it is applied", migrated);
  });
  assert.deepEqual(await shop.steps(), ["second", "third", "begun", "other"]);
});

Deno.test("eight migrations at once build one index, and none waits for the snapshot of another", async () => {
  await using shop = await makeShop({ ...threeFiles, "0004_index.sql": concurrently });
  const said = await Promise.all(Array.from({ length: 8 }, () => shop.migrate()));
  assert.equal(said.flat().filter((line) => line.includes("applied 0004_index")).length, 1);
});

Deno.test("a file without a transaction that failed half-way is applied again from the start", async () => {
  await using shop = await makeShop({ ...threeFiles, "0004_index.sql": concurrently });
  await shop.write("0003_third.sql", threeFiles["0002_second.sql"]); // the same step twice
  await assert.rejects(shop.migrate(), /"0004_index\.sql" failed: .*could not create unique index/);
  const validity =
    "select indisvalid as valid from pg_index where indexrelid = 'steps_by_step'::regclass";
  assert.deepEqual(await shop.asOwner(validity), [{ valid: false }]);

  await shop.asOwner("delete from steps where id = 1");
  await shop.migrate();
  assert.deepEqual(await shop.asOwner(validity), [{ valid: true }]);
});
