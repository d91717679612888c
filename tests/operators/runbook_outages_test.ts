// The sections of docs/runbook.md for outages, slow databases and growing tables, followed during
// them.
import assert from "node:assert/strict";
import { startNats } from "../../tools/servers/nats.ts";
import { grant } from "../support/api.ts";
import { freshDatabase, withClient } from "../support/databases.ts";
import { ask } from "../support/entitlement.ts";
import { blocksOf, runCommand, runQuery } from "./runbook.ts";
import type { Settings } from "../../tools/servers/service_process.ts";
import { startSystem } from "../support/system.ts";
import type { Stage } from "../../tools/load/stage.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("the runbook finds an outage of NATS and of a service, and their end", async () => {
  await using nats = await startNats();
  await using system = await startSystem({
    natsUrl: nats.url,
    replicas: 1,
    settings: { ENTITLEMENT_DEBUG_ENABLED: "true", NOTIFICATION_DEBUG_ENABLED: "true" },
  });
  const settings = opsSettings(system);
  const allIsWell = (heading: string, nth: number) =>
    until("all is well", async () => {
      const output = await runCommand(heading, nth, settings).catch(() => "");
      return /^ +events waiting in the outbox +0$.*^ +notifications waiting +0$.*All is well/ms
        .test(
          output,
        );
    });
  await allIsWell("First look", 0);

  await nats.kill();
  await until("it is noticed", async () => {
    const output = await runCommand("NATS is unavailable", 0, settings, 1).catch(() => "");
    return output.includes("entitlement is not connected to NATS");
  });
  const [entitlement] = system.replicas.entitlement;
  assert.equal((await grant(entitlement?.url ?? "")).status, 200);
  const stream = "Events do not reach the stream";
  assert.match(await runCommand(stream, 0, settings), /PENDING/);
  await nats.start();
  await allIsWell("NATS is unavailable", 1);
  assert.match(await runCommand(stream, 1, settings), /Nothing is waiting/);

  await system.replicas.notification[0]?.kill();
  assert.match(
    await runCommand("First look", 0, settings, 3),
    /notification at .* can't be reached/,
  );
  await runCommand("Events are not received", 0, settings, 3);
  await system.start("notification");
  await allIsWell("A service is down", 0);
  await allIsWell("Events are not received", 1);
  await allIsWell("A database is unavailable", 0);
});

Deno.test("the runbook finds and ends exactly the session that blocks others", async () => {
  await using database = await freshDatabase("entitlement");
  const { ownerUrl } = database;
  await withClient(ownerUrl, async (holder) => {
    holder.on("error", () => {}); // the runbook ends its connection
    await holder.query("begin; lock table entitlements");
    const { rows: [{ pid }] } = await holder.query("select pg_backend_pid() as pid");
    const waiting = withClient(ownerUrl, (client) => client.query("select from entitlements"))
      .catch(() => {}); // the runbook may end this one, too
    const slow = "A database is slow";
    await until("somebody waits", async () => {
      const [found] = await runQuery<{ held_up_by: number }>(slow, 0, ownerUrl);
      return found?.held_up_by === pid;
    });
    assert.deepEqual(await runQuery(slow, 1, ownerUrl), [], "open for less than ten minutes");
    const atOnce = blocksOf(slow, "sql")[1]?.replace("10 minutes", "0 minutes") ?? "";
    const ended = await ask<{ pid: number; ended: boolean }>(ownerUrl, atOnce);
    assert.ok(ended.some((one) => one.pid === pid && one.ended));
    await waiting;
  });
});

Deno.test("the queries of the runbook show connections and the largest tables", async () => {
  await using database = await freshDatabase("notification");
  const [server] = await runQuery<{ standby: boolean; connections: number; allowed: number }>(
    "A database is unavailable",
    0,
    database.ownerUrl,
  );
  assert.equal(server?.standby, false);
  assert.ok(server && server.connections > 0 && server.connections <= server.allowed);
  const tables = await runQuery<{ table: string }>("Tables grow", 0, database.ownerUrl);
  assert.ok(tables.some(({ table }) => table === "notifications"));
});

function opsSettings({ replicas }: Stage): Settings {
  const port = (service: "entitlement" | "notification") =>
    new URL(replicas[service][0]?.url ?? "").port;
  return {
    ENTITLEMENT_HTTP_PORT: port("entitlement"),
    NOTIFICATION_HTTP_PORT: port("notification"),
  };
}
