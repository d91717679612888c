// A migration is refused when its files do not match what was applied.
import assert from "node:assert/strict";
import { makeShop, type Shop, start, step, threeFiles } from "./shop.ts";

Deno.test("an edited file is refused by name, and nothing newer is applied", async () => {
  await using shop = await makeShop(threeFiles);
  await shop.migrate();
  await shop.write("0002_second.sql", step("edited"));
  await shop.write("0004_fourth.sql", step("fourth"));

  await assert.rejects(shop.migrate(), /"0002_second\.sql" was edited/);
  assert.deepEqual(await shop.steps(), ["second", "third"]);
});

Deno.test("line endings of another system are not an edit", async () => {
  await using shop = await makeShop({ ...threeFiles, "0001_start.sql": `${start}\n\n` });
  await shop.migrate();
  await shop.write("0001_start.sql", `${start}\r\n\r\n`);
  assert.deepEqual(await shop.migrate(), ["shop: up to date at 0003"]);
});

const otherHistories: Record<string, [(shop: Shop) => Promise<unknown>, RegExp]> = {
  "a missing file is refused by name": [
    (shop) => shop.remove("0002_second.sql"),
    /"0002_second\.sql" was applied, but the file is missing/,
  ],
  "a renamed file is refused by its old name": [
    async (shop) => {
      await shop.remove("0002_second.sql");
      await shop.write("0002_renamed.sql", threeFiles["0002_second.sql"]);
    },
    /"0002_second\.sql" was applied, but the file is missing/,
  ],
  "a database that is newer than the files is refused": [
    (shop) => shop.remove("0003_third.sql"),
    /newer than the files, which end at 0002: "0003_third\.sql" was applied/,
  ],
  "a file that was added before an applied one is refused": [
    (shop) => shop.asOwner("delete from schema_migrations where version = 2"),
    /"0003_third\.sql" was applied, but the earlier "0002_second\.sql" was not/,
  ],
};

for (const [property, [change, refusal]] of Object.entries(otherHistories)) {
  Deno.test(property, async () => {
    await using shop = await makeShop(threeFiles);
    await shop.migrate();
    await change(shop);
    await assert.rejects(shop.migrate(), refusal);
  });
}

Deno.test("gaps, duplicates and wrong names are refused before anything is applied", async (t) => {
  const wrong: [string, RegExp][] = [
    ["0005_fifth.sql", /The file number 0004 is missing before "0005_fifth\.sql"/],
    ["0003_again.sql", /"0003_again\.sql" and "0003_third\.sql" have the same number/],
    ["4_fourth.sql", /"4_fourth\.sql" must have a name of the form/],
  ];
  for (const [file, refusal] of wrong) {
    await t.step(file, async () => {
      await using shop = await makeShop({ ...threeFiles, [file]: step("wrong") });
      await assert.rejects(shop.migrate(), refusal);
      await assert.rejects(shop.steps(), /does not exist/);
    });
  }
});
