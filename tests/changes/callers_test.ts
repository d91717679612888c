// Each caller has its own idempotency keys: two clients neither collide nor see each other's
// answers.
import assert from "node:assert/strict";
import { bearer, newClient, tokensOf } from "../support/access.ts";
import { type Answer, assertError, post, someFields } from "../support/api.ts";
import { ask } from "../../tools/servers/asking.ts";
import { startReplicas } from "../support/changes.ts";
import { freshDatabase } from "../support/databases.ts";
import { startIssuer } from "../access/issuer.ts";
import { look } from "../support/stack.ts";

Deno.test("the same key of two callers is two changes, each with an answer of its own", async () => {
  await using place = await openPlace();
  const [first, second] = await Promise.all([
    place.grant("shop", "key", { user_id: "ann" }),
    place.grant("till", "key", { user_id: "bob" }),
  ]);
  assert.deepEqual([first.json.user_id, second.json.user_id], ["ann", "bob"]);
  for (const [caller, answer] of [["shop", first], ["till", second]] as const) {
    const again = await place.grant(caller, "key", { user_id: answer.json.user_id });
    assert.equal(again.headers.get("Idempotency-Replayed"), "true");
    assert.equal(again.text, answer.text);
  }
});

Deno.test("no caller gets the answer of another caller, or of a caller without a name", async () => {
  await using place = await openPlace();
  await place.grant("shop", "key", { user_id: "ann" });
  await place.grant("", "open", { user_id: "bob" });
  for (
    const [caller, key, user_id] of [["till", "key", "ann"], ["", "key", "ann"], [
      "shop",
      "open",
      "bob",
    ]]
  ) {
    const answer = await place.grant(caller ?? "", key ?? "", { user_id: user_id ?? "" });
    assertError(answer, 409, "ENTITLEMENT_STATE_CONFLICT", "already ACTIVE");
    assert.equal(answer.headers.get("Idempotency-Replayed"), null);
  }
  const joined = await place.grant("", "shop key", { user_id: "ann" });
  assertError(joined, 400, "BAD_REQUEST");
});

Deno.test("a client's tokens share its keys, so that it can rotate them in the middle of a retry", async () => {
  await using place = await openPlace();
  const first = await place.grant("shop", "key", { user_id: "ann" });
  const again = await place.grant("shop, rotated", "key", { user_id: "ann" });
  assert.deepEqual([again.text, again.headers.get("Idempotency-Replayed")], [first.text, "true"]);
});

Deno.test("a key is stored with the name of its caller before it, or alone if the caller has no name", async () => {
  await using place = await openPlace();
  const key = "k".repeat(255);
  const callers = { "": "", "shop": "shop", "longest": `jwt:${"n".repeat(250)}` };
  for (const caller of Object.keys(callers)) {
    const { status, text } = await place.grant(caller, key, { user_id: `user of ${caller}` });
    assert.equal(status, 200, text);
  }
  const stored = await ask<{ idem_key: string }>(
    place.ownerUrl,
    "select idem_key from idempotency_keys order by length(idem_key)",
  );
  const names = Object.values(callers);
  assert.deepEqual(
    stored.map(({ idem_key }) => idem_key),
    names.map((name) => name === "" ? key : `${name} ${key}`),
  );
  const audit = await ask<{ caller: string; request_id: string }>(
    place.ownerUrl,
    "select caller, request_id from entitlement_audit order by length(caller)",
  );
  assert.deepEqual(audit, names.map((caller) => ({ caller, request_id: key })));
});

Deno.test("a client of the issuer is not the user who has its name", async () => {
  await using place = await openPlace();
  const names = { "sub": "jwt:shop", "client_id": "jwt-client:shop", "azp": "jwt-azp:shop" };
  const users: Record<string, string> = {};
  for (const claim of Object.keys(names)) {
    const user_id = users[claim] = `user of ${claim}`;
    const { json, headers } = await place.grant(`${claim} shop`, "key", { user_id });
    assert.deepEqual([json.user_id, headers.get("Idempotency-Replayed")], [user_id, null]);
  }
  const audit = await ask<{ caller: string; user_id: string }>(
    place.ownerUrl,
    "select caller, user_id from entitlement_audit",
  );
  const callers = Object.fromEntries(audit.map(({ caller, user_id }) => [user_id, caller]));
  for (const [claim, name] of Object.entries(names)) {
    assert.equal(callers[users[claim] ?? ""], name);
  }
});

Deno.test("the timeline finds a key by its caller, and names the caller", async () => {
  await using place = await openPlace();
  await place.grant("shop", "key", { user_id: "ann" });
  await place.grant("", "key", { user_id: "bob" });
  const find = async (key: string) => {
    const path = `/debug/entitlement/timeline?idempotency_key=${encodeURIComponent(key)}`;
    const { events, key: answer } = await look(place.openUrl, path);
    return events.map((event: Record<string, unknown>) => [
      ...[event["user_id"], event["caller"], event["idempotency_key"]],
      ...[answer.caller, answer.idempotency_key],
    ]);
  };
  assert.deepEqual(await find("shop key"), [["ann", "shop", "key", "shop", "key"]]);
  assert.deepEqual(await find("key"), [["bob", "", "key", "", "key"]]);
  assert.deepEqual(await find("till key"), []);
});

interface Place extends AsyncDisposable {
  openUrl: string; // of a replica that requires no credential
  ownerUrl: string;
  grant(caller: string, key: string, fields: { user_id: string }): Promise<Answer>;
}

async function openPlace(): Promise<Place> {
  const database = await freshDatabase("entitlement");
  const issuer = await startIssuer();
  const clients = {
    "shop": newClient("shop", "entitlements:write"),
    "shop, rotated": newClient("shop", "entitlements:write"),
    "till": newClient("till", "entitlements:write"),
  };
  const [closed, open] = await Promise.all([
    startReplicas(1, database.serviceUrl, {
      ...tokensOf(...Object.values(clients)),
      ...issuer.settings,
    }),
    startReplicas(1, database.serviceUrl, { ENTITLEMENT_DEBUG_ENABLED: "true" }),
  ]);
  const signed = (claims: Record<string, string>) =>
    issuer.sign({ ...claims, scope: "entitlements:write", inSeconds: 60 });
  const jwts: Record<string, string> = { longest: await signed({ sub: "n".repeat(250) }) };
  for (const claim of ["sub", "client_id", "azp"]) {
    jwts[`${claim} shop`] = await signed({ [claim]: "shop" });
  }
  const tokenOf = (caller: string) => jwts[caller] ?? clients[caller as keyof typeof clients].token;
  const [openUrl = ""] = open.urls;
  const [closedUrl = ""] = closed.urls;
  return {
    openUrl,
    ownerUrl: database.ownerUrl,
    grant: (caller, key, fields) =>
      caller === ""
        ? post(openUrl, "grants", { ...someFields, ...fields }, key)
        : post(closedUrl, "grants", { ...someFields, ...fields }, key, bearer(tokenOf(caller))),
    async [Symbol.asyncDispose]() {
      await Promise.all([closed, open].map((replicas) => replicas[Symbol.asyncDispose]()));
      await issuer[Symbol.asyncDispose]();
      await database.drop();
    },
  };
}
