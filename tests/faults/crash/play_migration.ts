// The same for `deno task migrate`, which has two databases to make.
import assert from "node:assert/strict";
import { runArguments } from "../../../tools/services.ts";
import { bothUnmigrated } from "../../support/places.ts";
import { grant } from "../../../tools/load/change_request.ts";
import { sendChange } from "../../support/changes.ts";
import { countRows } from "../../../tools/servers/asking.ts";
import {
  type Answered,
  assertAllHold,
  checkInvariants,
  type OwnerUrls,
  untilAtRest,
} from "../../../tools/chaos/invariants/invariants.ts";
import { type Settings, startService } from "../../../tools/servers/service_process.ts";
import { until } from "../../../tools/servers/wait.ts";
import { deathAt, doom } from "./doomed.ts";
import type { Counts } from "./observer.ts";
import type { MigrationPoint } from "./migration_points.ts";
import { killed } from "./play.ts";
import { root } from "../../../tools/root.ts";

export async function playOutMigration({ at, leaves }: MigrationPoint): Promise<void> {
  await using place = bothUnmigrated();
  const { owners, settings } = place;
  const command = runArguments("migrate", (name) => settings[name]);
  assert.equal(await migrate(doom(command), { ...settings, ...deathAt(at) }), killed);
  await until("this is left", async () => {
    return JSON.stringify(await migrationsIn(owners)) === JSON.stringify(leaves);
  });

  assert.equal(await migrate(command, settings), 0);
  await using entitlement = await startService("entitlement", settings);
  await using _notification = await startService("notification", settings);
  const request = grant();
  const { answer } = await sendChange(entitlement.url, request);
  assert.equal(answer?.status, 200);
  await until(
    "it has arrived",
    async () => await countRows(owners.notification, "notifications") === 1,
  );
  await untilAtRest(owners);
  const answered = [{ request, answer }] as Answered[];
  assertAllHold(await checkInvariants({ owners, answered }));
}

async function migrate(args: string[], settings: Settings): Promise<number> {
  const process = new Deno.Command(Deno.execPath(), {
    ...{ args, cwd: root, env: settings, stdin: "null", stdout: "null", stderr: "inherit" },
  }).spawn();
  return (await process.status).code;
}

async function migrationsIn(owners: OwnerUrls): Promise<Counts> {
  const counts: Counts = {};
  for (const [service, url] of Object.entries(owners)) {
    const count = await countRows(url, "schema_migrations").catch(() => 0);
    if (count > 0) counts[`${service} migrations`] = count;
  }
  return counts;
}
