// Of the dead letters of an error a page is sent back for each request, and never one more than was
// asked for and answered.
import assert from "node:assert/strict";
import { Hono } from "hono";
import { deadEvents } from "../entitlement/dead_events.ts";
import { sendBack } from "../shared/send_back.ts";
import { Bell } from "../shared/signals.ts";
import { openFresh } from "./databases.ts";
import { ask } from "./entitlement.ts";
import { insertEvents } from "./outbox.ts";

const error = "too large";

Deno.test("of three dead letters a page of two is sent back, and the third with the next page", async () => {
  await using place = await openFresh("entitlement");
  const { database, ownerUrl } = place;
  const ids = await insertEvents(
    ownerUrl,
    [1, 2, 3].map((i) => ({ key: `user-${i}:book`, version: 1 })),
  );
  await ask(ownerUrl, "update outbox_events set status = 'FAILED', last_error = $1", [error]);
  const app = new Hono().post("/", sendBack([deadEvents(database, new Bell())]));
  const send = async (more: Record<string, unknown>) => {
    const body = JSON.stringify({ who: "kim", reason: "r", error, limit: 2, ...more });
    const headers = { "Content-Type": "application/json" };
    const response = await app.request("/", { method: "POST", headers, body });
    assert.equal(response.status, 200);
    const { dead_letters, next_cursor } = await response.json();
    const sent = dead_letters.map(({ id, outcome }: Record<string, string>) => [id, outcome]);
    return { sent, next_cursor };
  };
  const failed = async () => {
    const rows = await ask<{ event_id: string }>(
      ownerUrl,
      "select event_id from outbox_events where status = 'FAILED' order by event_id",
    );
    return rows.map(({ event_id }) => event_id);
  };
  const dry = await send({ dry_run: true });
  assert.deepEqual(dry.sent, ids.slice(0, 2).map((id) => [id, "WOULD_BE_SENT_BACK"]));
  assert.deepEqual(await failed(), ids);

  const page = await send({});
  assert.deepEqual(page.sent, ids.slice(0, 2).map((id) => [id, "SENT_BACK"]));
  assert.deepEqual(await failed(), ids.slice(2), "the third stays");

  const rest = await send({ cursor: page.next_cursor });
  assert.deepEqual(rest, { sent: [[ids[2], "SENT_BACK"]], next_cursor: undefined });
  assert.deepEqual(await failed(), []);
});
