// Databases have applied these files and refuse a file whose text has changed since, even in a
// comment. A new migration adds its line here.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { fileNameOf, readMigrations } from "../../migrations/files.ts";

const checksums: Record<string, Record<string, string>> = {
  account: {
    "0001_organs": "48084e78a7587b22",
    "0002_accounts": "1860ace504094bbc",
  },
  entitlement: {
    "0001_entitlements": "5a10cb524b692102",
    "0002_entitlement_audit": "017ffa78d8f78739",
    "0003_line_of_key": "54f4571c514fada8",
    "0004_operations": "5e98d737d2767fc9",
    "0005_failed_events": "80519484b43a3a13",
    "0006_locked_audit": "96ec161492acfcde",
    "0007_aggregate_key": "f9c86050769f4a61",
    "0008_appended_audit": "fd0e0da616628c82",
    "0009_points": "fad76a0390a7d96a",
  },
  notification: {
    "0001_notifications": "f718edde27898f4f",
    "0002_line_of_key": "4a15e132acdb4f49",
    "0003_operations": "8cc27928325b5a53",
    "0004_dead_advisories": "e52e82d8a5d81f48",
    "0005_traceparent": "96c7ad1953a5f3a4",
    "0006_erasures": "9042f105e92e81c0",
    "0007_aggregate_key": "880579513dac425e",
    "0008_orders": "1671791f9cdd4f80",
  },
};

for (const [service, expected] of Object.entries(checksums)) {
  Deno.test(`no applied migration of ${service} was edited`, async () => {
    const folder = fileURLToPath(new URL(`../../${service}/migrations`, import.meta.url));
    const { files } = await readMigrations(folder);
    const found = files.map((file) => [
      fileNameOf(file).replace(/\.sql$/, ""),
      file.checksum.slice(0, 16),
    ]);
    assert.deepEqual(Object.fromEntries(found), expected);
  });
}
