// The TypeScript client against the real service: what it returns, what it throws, and that it
// repeats a request until it is answered, without a second effect.
import assert from "node:assert/strict";
import {
  Conflict,
  type EntitlementChange,
  type Fetch,
  kenriClient,
  Refused,
  Unavailable,
} from "../../client/client.ts";
import { newClient, tokensOf } from "../support/access.ts";
import { openDoor } from "./door.ts";
import {
  type Entitlement,
  rowCounts,
  settingsOf,
  startEntitlement,
} from "../support/entitlement.ts";
import { serve } from "../support/fake_service.ts";
import { ownDatabase } from "../support/databases.ts";
import { type ServiceProcess, startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";

let kenri: Entitlement;

Deno.test.beforeAll(async () => {
  kenri = await startEntitlement();
});
Deno.test.afterAll(() => kenri.close());

const purchase = (fields: Partial<EntitlementChange> = {}): EntitlementChange => ({
  user_id: `user/${crypto.randomUUID()}`,
  stock_keeping_unit: "book",
  reason: "purchase",
  purchase_id: "p-1",
  ...fields,
});

/** The platform's fetch, which also records when it was called. */
function watched(): { fetch: Fetch; calledAt: number[]; statuses: number[] } {
  const calledAt: number[] = [];
  const statuses: number[] = [];
  const watching: Fetch = async (url, init) => {
    calledAt.push(performance.now());
    const response = await fetch(url, init);
    statuses.push(response.status);
    return response;
  };
  return { fetch: watching, calledAt, statuses };
}

Deno.test("a change returns the new entitlement, and its repetition returns the same as replayed", async () => {
  const client = kenriClient(`${kenri.url}/`);
  const fields = purchase();
  const { user_id } = fields;
  const granted = await client.grant("client-1", fields, { traceId: "order-17" });
  const { updated_at, ...entitlement } = granted.entitlement;
  const active = { user_id, stock_keeping_unit: "book", status: "ACTIVE", version: 1 };
  assert.deepEqual(entitlement, active);
  assert.deepEqual([granted.replayed, granted.traceId], [false, "order-17"]);

  const again = await client.grant("client-1", fields);
  assert.deepEqual([again.entitlement, again.replayed], [granted.entitlement, true]);
  const { entitlement: revoked } = await client.revoke("client-2", fields);
  assert.deepEqual([revoked.status, revoked.version], ["REVOKED", 2]);
  assert.ok(revoked.updated_at > updated_at);

  const { user_id: _, ...listed } = revoked;
  assert.deepEqual(await client.list(user_id), { user_id, entitlements: [listed] });
});

Deno.test("an answer that was lost because the service died after the commit is returned to the repetition", async () => {
  await using place = await startEntitlement();
  await using door = openDoor(place.url);
  let successor: ServiceProcess | undefined;
  door.loseNextAnswer(async () => {
    await place.service.kill();
    const port = new URL(place.url).port;
    successor = await startService("entitlement", {
      ...place.settings,
      ENTITLEMENT_HTTP_PORT: port,
    });
  });
  const { fetch, calledAt } = watched();
  const change = await kenriClient(door.url, { fetch }).grant("lost-1", purchase());
  assert.ok(successor && calledAt.length > 1);
  await successor.kill();
  assert.deepEqual([change.replayed, change.entitlement.version], [true, 1]);
  assert.deepEqual(await place.counts(), {
    entitlements: 1,
    idempotency_keys: 1,
    outbox_events: 1,
    entitlement_audit: 1,
  });
});

Deno.test("during an outage the client waits as Retry-After says, and afterwards the change is made", async () => {
  await using database = await ownDatabase();
  await using service = await startService("entitlement", settingsOf(database.serviceUrl));
  const { fetch, calledAt, statuses } = watched();
  const client = kenriClient(service.url, { fetch });
  await database.server.kill();
  const changing = client.grant("outage-1", purchase());
  const listing = client.list("ann");
  await until("both have come back", () => statuses.length >= 4);
  await database.server.start();
  const [{ entitlement }, { entitlements }] = await Promise.all([changing, listing]);
  assert.deepEqual([entitlement.version, entitlements], [1, []]);
  assert.deepEqual(new Set(statuses), new Set([503, 200]));
  // Two calls at a time; Retry-After said a second.
  for (const [i, at] of calledAt.slice(2).entries()) assert.ok(at - (calledAt[i] ?? 0) >= 1_000);
  assert.equal((await rowCounts(database.ownerUrl)).outbox_events, 1);
});

Deno.test("a client above its rate waits as Retry-After says", async () => {
  await using kenri = await startEntitlement({ ACCESS_RATE: "1" });
  const { fetch, calledAt, statuses } = watched();
  const client = kenriClient(kenri.url, { fetch });
  await client.grant("often-1", purchase());
  await client.grant("often-2", purchase());
  assert.deepEqual(statuses, [200, 429, 200]);
  assert.ok((calledAt[2] ?? 0) - (calledAt[1] ?? 0) >= 1_000);
});

Deno.test("a refusal is thrown as an error of its kind, and the request is not repeated", async () => {
  const { fetch, statuses } = watched();
  const client = kenriClient(kenri.url, { fetch });
  const fields = purchase();
  const { user_id } = fields;
  await client.grant("refused-1", fields);
  const thrown = async (call: Promise<unknown>) => {
    const before = statuses.length;
    const error = await call.then(() => assert.fail("it was not refused"), (error) => error);
    return [error, statuses.length - before] as const;
  };
  for (const replayed of [false, true]) {
    const [error, asked] = await thrown(client.grant("refused-2", fields));
    assert.ok(error instanceof Conflict);
    assert.deepEqual([error.code, error.message], [
      ...["ENTITLEMENT_STATE_CONFLICT", "already ACTIVE"],
    ]);
    assert.deepEqual([error.replayed, asked], [replayed, 1]);
  }
  const [conflict] = await thrown(client.revoke("refused-1", fields));
  assert.ok(conflict instanceof Conflict);
  assert.equal(conflict.code, "IDEMPOTENCY_KEY_CONFLICT");

  const [bad, asked] = await thrown(client.grant("refused-3", { ...fields, reason: " " }));
  assert.ok(bad instanceof Refused);
  assert.deepEqual([bad.code, bad.status, bad.message, asked], [
    ...["BAD_REQUEST", 400, "reason is required", 1],
  ]);
  const [elsewhere] = await thrown(kenriClient(`${kenri.url}/shop`).list(user_id));
  assert.ok(elsewhere instanceof Refused);
  assert.equal(elsewhere.code, "NOT_FOUND");
});

Deno.test("an answer that does not come from Kenri is an error, and no redirection is followed", async () => {
  const answers = [
    () => Response.redirect(`${kenri.url}/livez`, 302),
    () => new Response("<h1>It works</h1>"),
    () => new Response("<h1>Not found</h1>", { status: 404 }),
    () => Response.json({ error: "who are you?" }, { status: 401 }),
  ];
  let asked = 0;
  await using between = serve(() => answers[asked++]?.() ?? Response.error());
  const client = kenriClient(between.url);
  for (const status of [302, 200, 404, 401]) {
    const error = await client.grant("between-1", purchase()).catch((error) => error);
    assert.ok(error instanceof Refused, String(error));
    assert.deepEqual([error.code, error.status], [undefined, status]);
  }
});

Deno.test("a key that could not be transmitted unchanged is refused before it is sent", async () => {
  const { fetch, calledAt } = watched();
  const client = kenriClient(kenri.url, { fetch });
  for (const key of ["", " ", " padded ", "two words", "größe", "x\n", "x".repeat(256)]) {
    await assert.rejects(client.grant(key, purchase()), Refused);
  }
  assert.equal(calledAt.length, 0);
});

Deno.test("the token is sent with every request, and an attempt whose token function throws is repeated", async () => {
  const shop = newClient("shop", "entitlements:write", "entitlements:read");
  await using guarded = await startEntitlement(tokensOf(shop));
  const client = kenriClient(guarded.url, { token: shop.token });
  const fields = purchase();
  assert.equal((await client.grant("token-1", fields)).entitlement.version, 1);
  assert.equal((await client.list(fields.user_id)).entitlements.length, 1);
  const nobody = kenriClient(guarded.url);
  await assert.rejects(
    nobody.list("ann"),
    (error: Refused) => error.code === "UNAUTHORIZED" && error.status === 401,
  );

  let asked = 0;
  const issue = () => {
    if (++asked === 1) throw new Error("the issuer is away");
    return Promise.resolve(shop.token);
  };
  const { replayed } = await kenriClient(guarded.url, { token: issue }).grant("token-1", fields);
  assert.deepEqual([replayed, asked], [true, 2]);
  const never = kenriClient(guarded.url, {
    token: () => Promise.reject(new Error("no token")),
    deadlineMs: 300,
  });
  await assert.rejects(never.list("ann"), Unavailable);
});
