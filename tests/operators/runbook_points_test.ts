// The sections of docs/runbook.md for points and reservations.
import assert from "node:assert/strict";
import { startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { startEntitlement } from "../support/entitlement.ts";
import { grantPoints, inMs, reserve, untilAllAre } from "../support/points.ts";
import { runCommand } from "./runbook.ts";

const late = "Reservations are late";
const debug = { ENTITLEMENT_DEBUG_ENABLED: "true" };

Deno.test("late reservations are found with the commands of the runbook, and are carried out by a worker", async () => {
  await using kenri = await startEntitlement({
    ...debug,
    ENTITLEMENT_RESERVATIONS_ENABLED: "false",
  });
  const settings = { ENTITLEMENT_HTTP_PORT: new URL(kenri.url).port, USER: "kim" };
  const { json: due } = await reserve(kenri.url, { user_id: "ann" });
  const { json: next } = await reserve(kenri.url, { user_id: "ann", execute_at: inMs(3_600_000) });
  await until("it is late", async () => {
    const rows = await kenri.rows(
      "select from point_reservations where due_at < now() - interval '1.1 s'",
    );
    return rows.length === 1;
  });
  const overview = await runCommand(late, 0, settings, 1);
  assert.match(overview, /due reservations waiting +1, the oldest for [12] s\n/);
  assert.match(overview, /reservations to come +1\n/);
  assert.match(overview, /! reservations are late: ops points late/);
  assert.match(await runCommand(late, 1, settings), new RegExp(`${due.reservation_id}.* PENDING`));
  assert.match(await runCommand(late, 2, settings), new RegExp(next.reservation_id));

  await using _worker = await startService("entitlement", {
    ...kenri.settings,
    ...debug,
    ENTITLEMENT_RESERVATIONS_ENABLED: "true",
    ENTITLEMENT_HTTP_PORT: "0",
  });
  await untilAllAre(kenri.database.ownerUrl, ["DONE", "PENDING"]);
  await until(
    "it is done",
    async () => /Nothing is waiting/.test(await runCommand(late, 3, settings)),
  );
});

Deno.test("the points of a user and one reservation are found with the commands of the runbook", async () => {
  await using kenri = await startEntitlement(debug);
  const { json } = await reserve(kenri.url, { user_id: "ann" });
  await grantPoints(kenri.url, { user_id: "ann" });
  await untilAllAre(kenri.database.ownerUrl, ["DONE"]);
  const settings = {
    ENTITLEMENT_HTTP_PORT: new URL(kenri.url).port,
    ...{ USER: "kim", USER_ID: "ann", RESERVATION_ID: json.reservation_id },
  };
  const found = await runCommand("Where is one event?", 1, settings, 3); // notification is away
  assert.match(found, /points +20 +2 /);
  assert.match(found, /RESERVED[^]*DUE[^]*DONE[^]*CHANGED/);
  for (const nth of [0, 1]) {
    assert.match(await runCommand("Points do not add up", nth, settings), /All points agree/);
  }
  await kenri.rows("update point_root set balance = 21");
  const verified = await runCommand("Points do not add up", 0, settings, 1);
  assert.match(verified, /BALANCE +ann +points +2/);
});
