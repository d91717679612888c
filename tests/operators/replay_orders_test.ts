// The operators' replay of an endpoint, on prepared tables.
import assert from "node:assert/strict";
import { Hono } from "hono";
import { replayOf } from "../../notification/operators/orders/replay.ts";
import { Wakeup } from "../../shared/process/signals.ts";
import { ask } from "../../tools/servers/asking.ts";
import { openFresh } from "../support/databases.ts";
import { insertEndpoint, insertOrder } from "./order_rows.ts";

Deno.test("what is replayed is parked at once if its endpoint parks, and a dry run changes nothing", async () => {
  await using place = await openFresh("notification");
  const { database, ownerUrl } = place;
  const app = new Hono().post("/", replayOf(database, new Wakeup()));
  const replay = async (endpoint_id: string, dry_run: boolean) => {
    const answer = await app.request("/", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        ...{ endpoint_id, dry_run, who: "kim", reason: "it is back" },
        ...{ from: "2020-01-01T00:00:00Z", to: "2999-01-01T00:00:00Z" },
      }),
    });
    assert.equal(answer.status, 200, await answer.clone().text());
    return await answer.json();
  };
  const statusOf = async (id: string) => {
    const [row] = await ask<{ status: string }>(
      ownerUrl,
      "select status from outbox_orders where id = $1",
      [id],
    );
    return row?.status;
  };
  const cases = [[{}, "PENDING"], [{ state: "PAUSED" }, "PARKED"], [
    { is_draining: true },
    "PARKED",
  ]];
  for (const [fields, status] of cases) {
    const endpoint_id = await insertEndpoint(ownerUrl, fields as { state?: "PAUSED" });
    const dead = { endpoint_id, status: "ABORTED", reason: "TIMEOUT" } as const;
    const id = await insertOrder(ownerUrl, dead);
    const dry = await replay(endpoint_id, true);
    assert.deepEqual([dry.replayed, dry.operation_id], [1, null]);
    assert.equal(await statusOf(id), "ABORTED");
    const done = await replay(endpoint_id, false);
    assert.deepEqual([done.replayed, typeof done.operation_id], [1, "string"]);
    assert.equal(await statusOf(id), status);
  }
});
