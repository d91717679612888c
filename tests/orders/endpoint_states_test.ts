// An endpoint is paused, resumed and deleted by its caller.
import assert from "node:assert/strict";
import { assertError } from "../support/api.ts";
import { act, getEndpoint, listEndpoints, make, remove } from "../support/endpoints.ts";
import { startOrders } from "../support/orders.ts";
import { newKey } from "../support/points.ts";

Deno.test("a paused endpoint can be resumed, and both may be repeated", async () => {
  await using stage = await startOrders();
  const { endpoint_id: id } = await make(stage);
  for (let round = 0; round < 2; round++) {
    const paused = await act(stage, id, "pause");
    assert.equal(paused.status, 200);
    assert.equal(paused.json.state, "PAUSED");
    assert.equal(paused.json.state_since, paused.json.updated_at);
    assert.deepEqual((await act(stage, id, "pause")).json, paused.json);
    assert.deepEqual((await getEndpoint(stage, id)).json, paused.json);
    const resumed = await act(stage, id, "resume");
    assert.equal(resumed.json.state, "ACTIVE");
    const again = await act(stage, id, "resume");
    assert.equal(again.json.state_since, resumed.json.state_since);
  }
});

Deno.test("a key makes a pause safe to repeat after a later resume", async () => {
  await using stage = await startOrders();
  const { endpoint_id: id } = await make(stage);
  const headers = { "Idempotency-Key": newKey() };
  const first = await act(stage, id, "pause", {}, headers);
  await act(stage, id, "resume");
  const again = await act(stage, id, "pause", {}, headers);
  assert.equal(again.headers.get("Idempotency-Replayed"), "true");
  assert.equal(again.text, first.text);
  assert.equal((await getEndpoint(stage, id)).json.state, "ACTIVE");
  const other = await act(stage, id, "resume", {}, headers);
  assertError(other, 409, "IDEMPOTENCY_KEY_CONFLICT");
});

Deno.test("resume leads from each state to ACTIVE, and only what parks already can't be paused", async () => {
  await using stage = await startOrders();
  for (const state of ["FAILING", "DISABLED", "GONE"]) {
    const { endpoint_id: id } = await make(stage);
    const fail = () =>
      stage.rows(
        `update endpoints
         set state = $2, failures = 9, probes = 3, failing_since = now(), probe_order_id = $1,
           next_probe_at = now() + interval '1 hour'
         where endpoint_id = $1`,
        [id, state],
      );
    await fail();
    const paused = await act(stage, id, "pause");
    if (state === "FAILING") assert.equal(paused.json.state, "PAUSED");
    else assertError(paused, 409, "ENDPOINT_STATE_CONFLICT", `already ${state}`);
    await fail();
    const { json } = await act(stage, id, "resume");
    assert.equal(json.state, "ACTIVE");
    assert.deepEqual(
      await stage.rows(
        `select state, failures, probes, failing_since, next_probe_at, probe_order_id
         from endpoints
         where endpoint_id = $1`,
        [id],
      ),
      [{
        state: "ACTIVE",
        failures: 0,
        probes: 0,
        failing_since: null,
        next_probe_at: null,
        probe_order_id: null,
      }],
    );
  }
});

Deno.test("a deleted endpoint is not found any more", async () => {
  await using stage = await startOrders();
  const { endpoint_id: id } = await make(stage);
  const deleted = await remove(stage, id);
  assert.equal(deleted.status, 204);
  assert.equal(deleted.text, "");
  assertError(await remove(stage, id), 404, "NOT_FOUND");
  assertError(await getEndpoint(stage, id), 404, "NOT_FOUND");
  assertError(await act(stage, id, "resume"), 404, "NOT_FOUND");
  const { json } = await listEndpoints(stage);
  assert.ok(json.endpoints.every((one: { endpoint_id: string }) => one.endpoint_id !== id));
});
