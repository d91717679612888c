// The operation under which a user is erased.
import assert from "node:assert/strict";
import { assertError, call, grant } from "../support/api.ts";
import { untilSent } from "../support/notification.ts";
import { startStack } from "../support/stack.ts";
import { ask } from "../../tools/servers/asking.ts";

Deno.test("a user is not erased under the id of another operation, whose log would not say so", async () => {
  await using stack = await startStack();
  const { entitlement, notification, place } = stack;
  await grant(entitlement.url, { user_id: "ann" });
  await untilSent(place, 1);
  const operation_id = crypto.randomUUID();
  const services = [
    ["entitlement", entitlement.url, entitlement.database.ownerUrl, "entitlements", "outbox"],
    ["notification", notification.url, place.ownerUrl, "notifications", "delivery"],
  ] as const;
  for (const [name, url, ownerUrl, table, layer] of services) {
    await ask(
      ownerUrl,
      `insert into operations (operation_id, kind, layer, who, reason, items)
       values ($1, 'REPLAY', $2, 'kim', 'test', '[]')`,
      [operation_id, layer],
    );
    const refused = await call(`${url}/operations/${name}/erase-user`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ user_id: "ann", operation_id, who: "kim", reason: "r" }),
    });
    const message = "operation_id belongs to another operation; leave it out";
    assertError(refused, 400, "BAD_REQUEST", message);
    assert.equal((await ask(ownerUrl, `select from ${table} where user_id = 'ann'`)).length, 1);
  }
});
