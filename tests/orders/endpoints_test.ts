// Endpoints are made, looked up, listed and changed by their caller, and by nobody else: H-107.
import assert from "node:assert/strict";
import { bearer, newClient, tokensOf } from "../support/access.ts";
import { type Answer, assertError, command } from "../support/api.ts";
import {
  act,
  attemptsAt,
  change,
  getEndpoint,
  listEndpoints,
  make,
  remove,
} from "../support/endpoints.ts";
import { createEndpoint, order, type Orders, startOrders } from "../support/orders.ts";
import { newKey } from "../support/points.ts";

let stage: Orders;

const clients = ["shop", "till", "crowd"].map((name) =>
  newClient(name, "endpoints:write", "endpoints:read", "orders:write")
);
const [shop = {}, till = {}, crowd = {}] = clients.map(({ token }) => bearer(token));

Deno.test.beforeAll(async () => {
  stage = await startOrders({
    ...tokensOf(...clients),
    NOTIFICATION_ENDPOINTS_AT_ONCE: "7",
    NOTIFICATION_ORDERS_ENABLED: "false",
    NOTIFICATION_ENDPOINTS_MAX_PER_CALLER: "12",
  });
});
Deno.test.afterAll(() => stage.close());

const secretPattern = /^whsec_[A-Za-z0-9+/]{43}=$/;

async function removeAll(headers: Record<string, string>): Promise<void> {
  const { json } = await listEndpoints(stage, {}, headers);
  for (const { endpoint_id } of json.endpoints) await remove(stage, endpoint_id, headers);
}

Deno.test("an endpoint is made with defaults, and looked up without its secret", async () => {
  const url = `${stage.receiver.url}/hooks`;
  const { status, json } = await createEndpoint(stage, { url }, shop);
  assert.equal(status, 201);
  const { secret, ...endpoint } = json;
  assert.match(secret, secretPattern);
  const { endpoint_id, created_at } = endpoint;
  assert.deepEqual(endpoint, {
    endpoint_id,
    url,
    event_types: null,
    user_id: null,
    ordering: "key",
    at_once: 7,
    description: null,
    state: "ACTIVE",
    state_since: created_at,
    is_draining: false,
    failures: 0,
    failing_since: null,
    next_probe_at: null,
    last_success_at: null,
    last_failure_at: null,
    last_reason: null,
    created_at,
    updated_at: created_at,
  });
  assert.deepEqual((await getEndpoint(stage, endpoint_id, shop)).json, endpoint);
  assert.deepEqual((await getEndpoint(stage, endpoint_id.toUpperCase(), shop)).json, endpoint);
  await removeAll(shop);
});

Deno.test("an endpoint is made with what its caller chooses", async () => {
  const fields = {
    url: `${stage.receiver.url}/a?b=c`,
    event_types: ["PointsTaken", "EntitlementGranted"],
    user_id: "ann ☂",
    ordering: "endpoint",
    at_once: 1,
    description: "the shop",
  };
  const given = { ...fields, event_types: [...fields.event_types, "PointsTaken"] };
  const { json } = await createEndpoint(stage, given, shop);
  const expected = { ...fields, event_types: fields.event_types.toSorted() };
  assert.deepEqual({ ...json, ...expected }, json);
  await removeAll(shop);
});

Deno.test("the secret is stored encrypted, and no later answer contains it", async () => {
  const { endpoint_id: id, secret } = await make(stage, {}, shop);
  const stored = await stage.rows<{ ciphertext: Uint8Array }>(
    "select ciphertext from endpoint_secrets where endpoint_id = $1",
    [id],
  );
  assert.equal(stored.length, 1);
  const words = [secret, secret.slice(6)];
  const bytes = String.fromCharCode(...stored[0]?.ciphertext ?? []);
  const raw = atob(secret.slice(6));
  const answers = await Promise.all([
    getEndpoint(stage, id, shop),
    listEndpoints(stage, {}, shop),
    change(stage, id, { description: "x" }, shop),
    act(stage, id, "pause", {}, shop),
    act(stage, id, "resume", {}, shop),
    attemptsAt(stage, id, {}, shop),
  ]);
  for (const text of [bytes, ...answers.map(({ text }) => text)]) {
    for (const word of [...words, raw]) assert.ok(!text.includes(word));
  }
  for (const { text } of answers) assert.doesNotMatch(text, /whsec_/);
  await removeAll(shop);
});

Deno.test("a repeated request makes one endpoint, and its answer has no secret", async () => {
  const fields = { url: `${stage.receiver.url}/hooks` };
  const key = newKey();
  const create = (given: object) => command(`${stage.url}/v1/endpoints`, given, key, shop);
  const [first, second, other] = [
    await create(fields),
    await create(fields),
    await create({ ...fields, description: "x" }),
  ];
  assert.equal(first.status, 201);
  assert.equal(first.headers.get("Idempotency-Replayed"), null);
  const { secret, ...shown } = first.json;
  assert.match(secret, secretPattern);
  assert.equal(second.status, 201);
  assert.equal(second.headers.get("Idempotency-Replayed"), "true");
  assert.deepEqual(second.json, shown);
  assertError(other, 409, "IDEMPOTENCY_KEY_CONFLICT");
  assert.equal((await listEndpoints(stage, {}, shop)).json.endpoints.length, 1);
  const stored = await stage.rows<{ response_body: string }>(
    "select response_body from idempotency_keys",
  );
  assert.equal(stored.length, 1);
  assert.doesNotMatch(JSON.stringify(stored), /whsec_/);
  await removeAll(shop);
});

Deno.test("only the fields that are sent are changed, and null brings the default back", async () => {
  const fields = { event_types: ["PointsAdded"], user_id: "ann", at_once: 2, ordering: "none" };
  const { endpoint_id: id } = await make(stage, { ...fields, description: "x" }, shop);
  const { json: before } = await getEndpoint(stage, id, shop);
  const url = `${stage.receiver.url}/other`;
  const changes = [
    [{ url }, { url }],
    [{ description: "y", unknown: 1 }, { description: "y" }],
    [{ event_types: null, at_once: null }, { event_types: null, at_once: 7 }],
    [{ user_id: null, ordering: null, description: null }, {
      user_id: null,
      ordering: "key",
      description: null,
    }],
    [{}, {}],
  ];
  let expected = before;
  for (const [sent = {}, changed] of changes) {
    const { status, json } = await change(stage, id, sent, shop);
    assert.equal(status, 200);
    expected = { ...expected, ...changed, updated_at: json.updated_at };
    assert.deepEqual(json, expected);
    assert.deepEqual((await getEndpoint(stage, id, shop)).json, expected);
  }
  await removeAll(shop);
});

Deno.test("endpoints are listed newest first, each once, whatever the limit", async () => {
  const ids: string[] = [];
  for (let i = 0; i < 7; i++) ids.unshift((await make(stage, {}, shop)).endpoint_id);
  for (const limit of ["1", "3", "7", "200"]) {
    const found: string[] = [];
    let query: Record<string, string> = { limit };
    for (;;) {
      const { status, json, text } = await listEndpoints(stage, query, shop);
      assert.equal(status, 200, text);
      found.push(...json.endpoints.map((one: { endpoint_id: string }) => one.endpoint_id));
      if (json.next_cursor === undefined) break;
      assert.equal(json.endpoints.length, Number(limit));
      query = { limit, cursor: json.next_cursor };
    }
    assert.deepEqual(found, ids);
  }
  await removeAll(shop);
  assert.deepEqual((await listEndpoints(stage, {}, shop)).json, { endpoints: [] });
});

Deno.test("a caller has at most so many endpoints, also when it asks for them at once", async () => {
  const url = `${stage.receiver.url}/hooks`;
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => createEndpoint(stage, { url }, crowd)),
  );
  const made = answers.filter(({ status }) => status === 201);
  assert.equal(made.length, 12);
  const message = "the caller has 12 endpoints, and may not have more";
  for (const refused of answers.filter(({ status }) => status !== 201)) {
    assertError(refused, 409, "ENDPOINT_LIMIT_REACHED", message);
  }
  await make(stage, {}, till);
  const [one] = made;
  assert.equal((await remove(stage, one?.json.endpoint_id, crowd)).status, 204);
  await make(stage, {}, crowd);
  assert.equal((await createEndpoint(stage, { url }, crowd)).status, 409);
  await removeAll(till);
  await removeAll(crowd);
});

const allOf2026 = { from: "2026-01-01T00:00:00Z", to: "2027-01-01T00:00:00Z", only: "ALL" };

Deno.test("H-107: another caller's endpoint is not found, and can't be changed", async () => {
  const { endpoint_id: id } = await make(stage, {}, shop);
  const { text: before } = await getEndpoint(stage, id, shop);
  for (const unknown of [id, crypto.randomUUID(), "x", "a/b", "%"]) {
    const answers: [string, Answer][] = [
      ["get", await getEndpoint(stage, unknown, till)],
      ["change", await change(stage, unknown, { description: "x" }, till)],
      ["delete", await remove(stage, unknown, till)],
      ["pause", await act(stage, unknown, "pause", {}, till)],
      ["resume", await act(stage, unknown, "resume", {}, till)],
      ["test", await act(stage, unknown, "test", {}, till)],
      ["rotate", await act(stage, unknown, "rotate-secret", {}, till)],
      ["replay", await act(stage, unknown, "replay", allOf2026, till)],
      ["attempts", await attemptsAt(stage, unknown, {}, till)],
    ];
    for (const [what, answer] of answers) {
      assert.equal(answer.status, 404, `${what} ${unknown} ${answer.text}`);
      assertError(answer, 404, "NOT_FOUND", "no such endpoint");
    }
  }
  const ordered = await order(stage, { endpoint_id: id }, undefined, till);
  assertError(ordered, 404, "NOT_FOUND", "no such endpoint");
  assert.deepEqual((await listEndpoints(stage, {}, till)).json, { endpoints: [] });
  assert.equal((await getEndpoint(stage, id, shop)).text, before);
  assert.deepEqual(
    await stage.rows("select from endpoint_secrets where endpoint_id = $1", [id]),
    [{}],
  );
  await removeAll(shop);
});
