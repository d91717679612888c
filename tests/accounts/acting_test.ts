// what a request for a user may do, and that the headers of a caller without the scope say nothing.
import assert from "node:assert/strict";
import { newClient, tokensOf } from "../support/access.ts";
import { type Account, resolve, send, startAccount } from "../support/account.ts";
import { assertError } from "../support/api.ts";

const all = ["accounts:resolve", "accounts:read", "accounts:write", "accounts:admin"] as const;
const gateway = newClient("gateway", ...all, "accounts:act-as");
const shop = newClient("shop", ...all); // may not act for users
const reader = newClient("reader", "accounts:read");

let account: Account;
const users: Record<string, string> = {};
Deno.test.beforeAll(async () => {
  account = await startAccount(tokensOf(gateway, shop, reader));
  for (const name of ["owner", "other", "admin", "support", "suspended"]) {
    const identity = { provider: "p", subject: name, name };
    const { user_id } = await resolve(account, identity, bearerOf(shop));
    users[name] = user_id;
  }
  await asShop("PUT", `${pathOf("admin")}/roles`, { roles: ["ADMIN"] });
  await asShop("PUT", `${pathOf("support")}/roles`, { roles: ["USER", "SUPPORT"] });
  await asShop("PUT", `${pathOf("suspended")}/roles`, { roles: ["ADMIN"] });
  await asShop("POST", `${pathOf("suspended")}:suspend`, { reason: "spam" });
});
Deno.test.afterAll(() => account.close());

const bearerOf = ({ token }: { token: string }) => ({ Authorization: `Bearer ${token}` });
const pathOf = (user: string) => `/v1/users/${users[user]}`;
const asShop = (method: string, path: string, body?: unknown) =>
  send(method, account.url + path, body, bearerOf(shop));

function actingFor(user: string | undefined, method: string, path: string, body?: unknown) {
  const headers = { ...bearerOf(gateway), ...(user === undefined ? {} : { "X-User-Id": user }) };
  return send(method, account.url + path, body, headers);
}

const notOwner = "only the owner of the account or an ADMIN may do this";
const notAdmin = "only an ADMIN may do this";

const actors: [name: string, mayAsOwner: boolean, mayAsAdmin: boolean][] = [
  ["owner", true, false],
  ["other", false, false],
  ["support", false, false],
  ["suspended", false, false], // has the role ADMIN
  ["admin", true, true],
];
const end = { expires_at: new Date(Date.now() + 60_000).toISOString() };
const forOwner: [method: string, path: () => string, body: () => unknown, status: number][] = [
  ["GET", () => pathOf("owner"), () => undefined, 200],
  ["PATCH", () => pathOf("owner"), () => ({ locale: "en" }), 200],
  ["POST", () => `${pathOf("owner")}/sessions:end`, () => undefined, 204],
  [
    ...["POST", () => `/v1/sessions/${crypto.randomUUID()}:end`] as const,
    ...[() => ({ user_id: users["owner"], ...end }), 204] as const,
  ],
  [
    ...["POST", () => "/v1/identities:end-sessions"] as const,
    ...[() => ({ provider: "p", subject: "owner" }), 204] as const,
  ],
];
const forAdmin: typeof forOwner = [
  ["POST", () => `${pathOf("other")}:suspend`, () => ({ reason: "spam" }), 204],
  ["POST", () => `${pathOf("other")}:resume`, () => ({ reason: "a mistake" }), 204],
  ["PUT", () => `${pathOf("other")}/roles`, () => ({ roles: ["USER"] }), 200],
  ["GET", () => `${pathOf("owner")}/audit`, () => undefined, 200],
];

for (const [name, mayAsOwner, mayAsAdmin] of actors) {
  Deno.test(`A-103: what the ${name} may do`, async () => {
    for (
      const [routes, may, message] of [
        ...[[forOwner, mayAsOwner, notOwner], [forAdmin, mayAsAdmin, notAdmin]] as const,
      ]
    ) {
      for (const [method, path, body, status] of routes) {
        const answer = await actingFor(users[name], method, path(), body());
        if (may) assert.equal(answer.status, status, answer.text);
        else assertError(answer, 403, "FORBIDDEN", message);
      }
    }
  });
}

Deno.test("A-103: without X-User-Id a caller acts by its own scopes", async () => {
  for (const [method, path, body, status] of [...forOwner, ...forAdmin]) {
    const answer = await actingFor(undefined, method, path(), body());
    assert.equal(answer.status, status, answer.text);
  }
});

Deno.test("A-103: a caller without accounts:act-as can't act for a user, nor lose its scopes by the header", async () => {
  for (const user of ["other", "admin"]) {
    const headers = { ...bearerOf(reader), "X-User-Id": users[user] as string };
    const answer = await send("GET", account.url + pathOf("owner"), undefined, headers);
    assert.equal(answer.status, 200); // as without the header
    const refused = await send("PATCH", account.url + pathOf("owner"), { locale: "de" }, headers);
    const message = "this needs a credential with the scope accounts:write";
    assertError(refused, 403, "FORBIDDEN", message);
  }
  const asAdmin = { ...bearerOf(shop), "X-User-Id": users["admin"] as string };
  const patched = await send("PATCH", account.url + pathOf("other"), { locale: "nl" }, asAdmin);
  assert.equal(patched.status, 200);
  const { json } = await asShop("GET", `${pathOf("other")}/audit?limit=1`);
  assert.equal(json.audit[0].actor, "shop");
});

Deno.test("A-103: roles that a header claims are ignored", async () => {
  for (const name of ["X-User-Roles", "X-Roles", "X-User-Role"]) {
    const headers = {
      ...bearerOf(gateway),
      "X-User-Id": users["other"] as string,
      [name]: "ADMIN",
    };
    const answer = await send("GET", account.url + pathOf("owner"), undefined, headers);
    assertError(answer, 403, "FORBIDDEN", notOwner);
  }
});

Deno.test("A-103: an X-User-Id that is no UUID is refused, and an unknown one is nobody's owner", async () => {
  for (const id of ["", "ann", `${users["owner"]}, ${users["admin"]}`, `${users["owner"]}x`]) {
    const answer = await actingFor(id, "GET", pathOf("owner"));
    assertError(answer, 400, "BAD_REQUEST", "X-User-Id must be a UUID");
  }
  const unknown = crypto.randomUUID();
  assertError(await actingFor(unknown, "GET", pathOf("owner")), 403, "FORBIDDEN", notOwner);
  assertError(await actingFor(unknown, "GET", `/v1/users/${unknown}`), 404, "NOT_FOUND");
});

Deno.test("A-103: ids are the same in capitals", async () => {
  const owner = users["owner"] as string;
  const path = pathOf("owner").replace(owner, owner.toUpperCase());
  for (const id of [owner, owner.toUpperCase()]) {
    const answer = await actingFor(id, "PATCH", path, { locale: "fr" });
    assert.deepEqual([answer.status, answer.json.user_id], [200, owner]);
  }
});

Deno.test("A-103: an unknown account is 404 for an ADMIN and for a caller, and 403 for others", async () => {
  const unknown = `/v1/users/${crypto.randomUUID()}`;
  assertError(await actingFor(users["admin"], "GET", unknown), 404, "NOT_FOUND", "user not found");
  assertError(await actingFor(undefined, "GET", unknown), 404, "NOT_FOUND", "user not found");
  assertError(await actingFor(users["other"], "GET", unknown), 403, "FORBIDDEN", notOwner);
});

Deno.test("the audit names the user for whom it was done, or the caller", async () => {
  await actingFor(users["admin"], "PATCH", pathOf("support"), { locale: "it" });
  await asShop("PATCH", pathOf("support"), { locale: "es" });
  const { json } = await asShop("GET", `${pathOf("support")}/audit?limit=2`);
  assert.deepEqual(json.audit.map(({ actor }: { actor: string }) => actor), [
    ...["shop", users["admin"]],
  ]);
});
