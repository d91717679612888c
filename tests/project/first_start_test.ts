// The first start after a clone, in a realistic folder: its name has a space and non-ASCII letters, and it
// is below a home folder that nobody else can enter.
import assert from "node:assert/strict";
import { call, grant, list } from "../support/api.ts";
import { makeClone, runTask } from "./clone.ts";
import { dropDatabase, dropRole, uniqueName, urlOf } from "../support/databases.ts";
import { startDev } from "./dev.ts";
import { plantedPassword } from "../../tools/planted.ts";
import { until } from "../../tools/servers/wait.ts";

const name = "my projects/kénri %41#?;$x";

Deno.test({
  name:
    "dev starts in a folder of any name that PostgreSQL's user can't enter, and says where data is",
  ignore: Deno.build.os !== "linux", // as in dev_test.ts
  fn: async () => {
    await using clone = await makeClone(name);
    {
      await using dev = startDev(clone);
      await dev.ready();
      assert.equal((await grant(dev.entitlement)).status, 200);
      await until("it arrives", async () => {
        const { json } = await call(`${dev.notification}/debug/notification/inbox/ann`);
        return json.notifications[0]?.status === "SENT";
      });
      const places = placesIn(dev.output.text);
      assert.equal(places[0], `${clone.clone}/.kenri/dev`);
      // For root PostgreSQL runs as another user, otherwise as the same one.
      assert.equal(places.length, Deno.uid() === 0 ? 2 : 1);
      const postgres = places[1] ?? `${places[0]}/postgres`;
      for (const [path, mode] of [[postgres, 0o700], [`${places[0]}/urls.env`, 0o600]] as const) {
        assert.equal(((await Deno.stat(path)).mode ?? 0) & 0o777, mode, path);
      }
      await dev.pressCtrlC();
      await dev.exited;
    }
    {
      await using again = startDev(clone);
      await again.ready();
      assert.equal((await list(again.entitlement, "ann")).json.entitlements.length, 1);
      await again.pressCtrlC();
      await again.exited;
    }
    await using fresh = startDev(clone, {}, ["--fresh"]);
    await fresh.ready();
    assert.deepEqual((await list(fresh.entitlement, "ann")).json.entitlements, []);
    await fresh.pressCtrlC();
    await fresh.exited;
    const outside = placesIn(fresh.output.text)[1];
    if (outside !== undefined) await Deno.remove(outside, { recursive: true });
  },
});

function placesIn(output: string): string[] {
  const line = output.match(/^The data is in .*$/m)?.[0] ?? "";
  return [...line.matchAll(/"([^"]+)"/g)].map(([, path = ""]) => path);
}

Deno.test("migrations, bundles, the schema and the linter's rules work in such a folder", async () => {
  await using clone = await makeClone(name);
  const database = uniqueName("clone");
  const databases = ["entitlement", "notification"].map((service) => `${database}_${service}`);
  const said = await runTask(
    clone,
    ["migrate"],
    Object.fromEntries(databases.flatMap((name) => {
      const service = name.split("_").at(-1)?.toUpperCase();
      const url = urlOf({ database: name, user: database, password: plantedPassword });
      return [
        [`${service}_DATABASE_URL`, url],
        [`${service}_MIGRATION_DATABASE_URL`, urlOf({ database: name })],
      ];
    })),
  );
  assert.match(said, /^entitlement: applied 0001_/m);
  for (const name of databases) await dropDatabase(name);
  await dropRole(database);
  assert.match(await runTask(clone, ["bundle"]), /migrate\.js/);
  await runTask(clone, ["proto:check"]);
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["lint", "--quiet", "shared", "entitlement"],
    cwd: clone.clone,
    env: { DENO_V8_FLAGS: "--single-threaded" }, // as `deno task ok` runs it
  }).output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
});
