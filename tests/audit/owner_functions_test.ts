// A role can choose the settings of its sessions. The functions of the owner do not depend on them.
import assert from "node:assert/strict";
import { ask } from "../../tools/servers/asking.ts";
import { freshDatabase, withClient } from "../support/databases.ts";
import type { ServiceName } from "../../tools/services.ts";

const set = ["search_path", "TimeZone", "DateStyle", "IntervalStyle", "bytea_output"];

for (const service of ["entitlement", "notification"] satisfies ServiceName[]) {
  Deno.test(`each function that runs as the owner of ${service} brings its own settings`, async () => {
    await using database = await freshDatabase(service);
    const functions = await ask<{ name: string; given: string[] }>(
      database.ownerUrl,
      `select proname as name, coalesce(proconfig, '{}') as given
       from pg_proc
       where pronamespace = 'public'::regnamespace and prosecdef`,
    );
    for (const { name, given } of functions) {
      const names = given.map((setting) => setting.split("=")[0] ?? "");
      assert.deepEqual(set.filter((one) => !names.includes(one)), [], name);
    }
    assert.equal(functions.length > 5, service === "entitlement");
  });
}

Deno.test("partitions begin and end with a month, whatever settings the role has", async () => {
  await using plain = await freshDatabase("entitlement");
  await using odd = await freshDatabase("entitlement");
  const make = (url: string, settings: string[]) =>
    withClient(url, async (service) => {
      for (const setting of settings) await service.query(`set ${setting}`);
      await service.query("select make_audit_partitions(20)");
      await service.query("select drop_audit_partitions(13)");
    });
  await make(plain.serviceUrl, []);
  // This time zone is written as if it were UTC.
  await make(odd.serviceUrl, ["datestyle = 'SQL, DMY'", "timezone = 'UTC+167'"]);
  const bounds = (url: string) =>
    ask(
      url,
      `select relname, pg_get_expr(relpartbound, oid) as bounds
       from pg_class where relpartbound is not null order by relname`,
    );
  assert.deepEqual(await bounds(odd.ownerUrl), await bounds(plain.ownerUrl));
});
