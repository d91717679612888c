// Idempotency keys are a caller's own: two clients neither collide nor see each other's answers.
import assert from "node:assert/strict";
import { Hono } from "hono";
import { entitlementApp } from "../entitlement/app.ts";
import type { OutboxRow } from "../entitlement/outbox.ts";
import { anybody } from "../shared/access/caller.ts";
import { Handover } from "../shared/handover.ts";
import { Bell } from "../shared/signals.ts";
import { type Database, openDatabase } from "../shared/postgres.ts";
import { startLog } from "../shared/log.ts";
import { assertError } from "./api.ts";
import { ask } from "./asking.ts";
import { freshDatabase, type TestDatabase } from "./databases.ts";

Deno.test("the same key of two callers is two changes, each with an answer of its own", async () => {
  await using place = await openPlace();
  const first = await place.change("shop", "key", { user_id: "ann" });
  const second = await place.change("till", "key", { user_id: "bob" });
  assert.deepEqual([first.status, second.status], [200, 200]);
  assert.deepEqual([first.json.user_id, second.json.user_id], ["ann", "bob"]);
  for (const [caller, user_id, answer] of [["shop", "ann", first], ["till", "bob", second]]) {
    const again = await place.change(caller as string, "key", { user_id: user_id as string });
    assert.equal(again.headers.get("Idempotency-Replayed"), "true");
    assert.deepEqual(again.text, (answer as typeof first).text);
  }
});

Deno.test("nobody gets another caller's answer, whichever the key and however it is put together", async () => {
  await using place = await openPlace();
  await place.change("shop", "key", { user_id: "ann" });
  for (const caller of ["", "till", "sho", "shop2"]) {
    const answer = await place.change(caller, "key", { user_id: "ann" });
    assertError(answer, 409, "ENTITLEMENT_STATE_CONFLICT", "already ACTIVE");
    assert.equal(answer.headers.get("Idempotency-Replayed"), null);
  }
  const joined = await place.change("", "shop key", { user_id: "ann" });
  assertError(joined, 400, "BAD_REQUEST");
});

Deno.test("a key is stored after its caller, and as it is of one without a name", async () => {
  await using place = await openPlace();
  const longest = "n".repeat(260);
  for (const [i, caller] of ["", "shop", longest].entries()) {
    await place.change(caller, "k".repeat(255), { user_id: `user-${i}` });
  }
  const stored = await ask<{ idem_key: string }>(
    place.ownerUrl,
    "select idem_key from idempotency_keys order by length(idem_key)",
  );
  const key = "k".repeat(255);
  assert.deepEqual(stored.map(({ idem_key }) => idem_key), [
    key,
    `shop ${key}`,
    `${longest} ${key}`,
  ]);
  const audit = await ask<{ caller: string; request_id: string }>(
    place.ownerUrl,
    "select caller, request_id from entitlement_audit order by user_id",
  );
  assert.deepEqual(audit, ["", "shop", longest].map((caller) => ({ caller, request_id: key })));
});

Deno.test("the timeline finds a key by its caller and says whose it was", async () => {
  await using place = await openPlace();
  await place.change("shop", "key", { user_id: "ann" });
  await place.change("", "key", { user_id: "bob" });
  const find = async (key: string) => {
    const path = `/debug/entitlement/timeline?idempotency_key=${encodeURIComponent(key)}`;
    const { events, key: answer } = await (await place.app.request(path)).json();
    return events.map((
      event: Record<string, unknown>,
    ) => [event["user_id"], event["caller"], event["idempotency_key"], answer.caller]);
  };
  assert.deepEqual(await find("shop key"), [["ann", "shop", "key", "shop"]]);
  assert.deepEqual(await find("key"), [["bob", "", "key", ""]]);
  assert.deepEqual(
    await (await place.app.request(
      "/debug/entitlement/timeline?idempotency_key=till%20key",
    )).json(),
    { events: [] },
  );
});

interface Place extends AsyncDisposable {
  app: Hono;
  database: Database;
  ownerUrl: string;
  change(caller: string, key: string, fields: { user_id: string }): Promise<{
    status: number;
    headers: Headers;
    text: string;
    // deno-lint-ignore no-explicit-any
    json: any;
  }>;
}

// The service's own app behind a door that lets in whoever says a name.
async function openPlace(): Promise<Place> {
  const fresh: TestDatabase = await freshDatabase("entitlement");
  const database = openDatabase(fresh.serviceUrl, "entitlement");
  const committed = new Handover<OutboxRow>();
  const operators = {
    database,
    committed: new Bell(),
    ask: () => Promise.reject(new Error("nobody answers")),
    graceSeconds: 0,
    natsIsThere: () => true,
  };
  const log = startLog("entitlement");
  const app = new Hono().use(async (context, next) => {
    const name = context.req.header("X-Caller") ?? "";
    context.set("caller", { ...anybody, name });
    await next();
  }).route(
    "/",
    entitlementApp({ database, committed, operators, checks: {}, log }, {
      idempotencyTtlMs: 60_000,
    }),
  );
  return {
    app,
    database,
    ownerUrl: fresh.ownerUrl,
    async change(caller, key, fields) {
      const response = await app.request("/v1/entitlements/grants", {
        method: "POST",
        headers: {
          "Content-Type": "application/json",
          "Idempotency-Key": key,
          ...(caller === "" ? {} : { "X-Caller": caller }),
        },
        body: JSON.stringify({
          ...fields,
          stock_keeping_unit: "book",
          reason: "purchase",
          purchase_id: "p-1",
        }),
      });
      const text = await response.text();
      return { status: response.status, headers: response.headers, text, json: JSON.parse(text) };
    },
    async [Symbol.asyncDispose]() {
      await database.end();
      await fresh.drop();
    },
  };
}
