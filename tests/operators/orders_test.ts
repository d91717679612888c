// Orders and endpoints as operators see them in `ops` and in the console, on a real sender and a
// receiver that fails.
import assert from "node:assert/strict";
import { plantedPayload, plantedSecretKey } from "../../tools/planted.ts";
import { until } from "../../tools/servers/wait.ts";
import { browserOf, formTokenIn } from "../console/persons.ts";
import { act, make } from "../support/endpoints.ts";
import { give, type Orders, startOrders, untilAllAre } from "../support/orders.ts";
import { look } from "../support/stack.ts";
import { type Output, runOps } from "./ops.ts";

const ops = ({ service }: Orders, ...args: string[]): Promise<Output> =>
  runOps("ops/ops.ts", { notification: service }, args);

async function said(stage: Orders, code: number, ...args: string[]): Promise<string> {
  const { code: found, output, errors } = await ops(stage, ...args);
  assert.deepEqual([found, errors], [code, ""], output);
  for (const planted of [plantedPayload, plantedSecretKey]) assert.ok(!output.includes(planted));
  return output;
}

async function page({ url }: Orders, path: string): Promise<string> {
  const answer = await fetch(`${url}${path}`);
  const html = await answer.text();
  assert.equal(answer.status, 200, html);
  for (const planted of [plantedPayload, plantedSecretKey]) assert.ok(!html.includes(planted));
  return html;
}

const unwell = {
  NOTIFICATION_ENDPOINTS_FAILURES_TO_PARK: "1",
  NOTIFICATION_ENDPOINTS_PROBE_MIN: "1h",
  NOTIFICATION_ENDPOINTS_PROBE_MAX: "1h",
  NOTIFICATION_ORDERS_MAX_ATTEMPTS: "1",
};

Deno.test("ops and the console show an order with its attempts, its ledger and its timeline", async () => {
  await using stage = await startOrders(unwell);
  const { receiver } = stage;
  assert.match(await said(stage, 0, "orders"), /due orders waiting +0\n[^]*All is well/);
  receiver.behave({ status: 503, body: "<b>no room</b>" });
  const id = await give(stage, { url: `${receiver.url}/hooks?token=secret` }, "payout-1");
  await untilAllAre(stage, ["ABORTED"]);
  for (const asked of [[id], ["--key", "payout-1"]]) {
    const shown = await said(stage, 0, "orders", ...asked);
    assert.match(shown, /^status +ABORTED$/m);
    assert.match(shown, /^message +the receiver answered 503$/m);
    assert.match(shown, /The ledger says FAILED 502 SERVER_ERROR, after 1 failed attempt,/);
    assert.match(shown, /GAVE_UP +503 +SERVER_ERROR/);
    assert.doesNotMatch(shown, /token=secret/);
  }
  assert.match(
    await said(stage, 1, "orders"),
    /failed for good +1\n[^]*ops dead list --layer order/,
  );
  assert.match(await said(stage, 0, "orders", "late"), /Nothing is waiting/);
  assert.match(await said(stage, 0, "dead", "show", "order", id), /the receiver answered 503/);
  assert.equal((await ops(stage, "orders", crypto.randomUUID())).code, 1);
  assert.equal((await ops(stage, "orders", id, "--key", "k")).code, 2);

  const { events: [event] } = await look(stage.url, `/debug/notification/timeline?order_id=${id}`);
  const steps = event.steps.map(({ step }: { step: string }) => step);
  assert.deepEqual(steps, ["ORDERED", "GAVE_UP"]);
  for (const query of [`order_id=${id}`, "idempotency_key=payout-1"]) {
    const html = await page(stage, `/console/orders?${query}`);
    assert.match(html, /SERVER_ERROR: the receiver answered 503/);
    assert.match(html, /Ledger[^]*FAILED/);
    assert.match(html, /&lt;b&gt;no room&lt;\/b&gt;/);
    assert.doesNotMatch(html, /token=secret/);
  }
  assert.match(await page(stage, `/console/timeline?by=order_id&q=${id}`), /GAVE_UP/);
  assert.match(await page(stage, "/console/dead-letters?layer=order"), /SERVER_ERROR/);
  assert.match(await page(stage, "/console/orders"), /No due order is waiting/);
});

Deno.test("an operator has the webhooks of an endpoint sent again, those that failed or all", async () => {
  await using stage = await startOrders({ NOTIFICATION_WEBHOOKS_MAX_ATTEMPTS: "1" });
  const { receiver } = stage;
  const { endpoint_id } = await make(stage);
  const sent = await give(stage, { endpoint_id });
  await untilAllAre(stage, ["SUCCEEDED"]);
  receiver.behave(400);
  const failed = await give(stage, { endpoint_id });
  await untilAllAre(stage, ["SUCCEEDED", "ABORTED"]);
  receiver.behave(200);
  const replay = (code: number, ...args: string[]) =>
    said(stage, code, "endpoints", "replay", endpoint_id, "--from", "1h", ...args);
  const asked = ["--reason", "it is back"];
  assert.match(await replay(0, "--dry-run"), /^1 order, made from .*, would be sent again\.$/m);
  assert.match(await replay(0, "--all", "--dry-run"), /^2 orders, /);
  assert.equal(receiver.received.length, 2);
  assert.match(await replay(0, ...asked), /^1 order, made from .*, will be sent again\.$/m);
  await untilAllAre(stage, ["SUCCEEDED"]);
  const idOf = (i: number) => receiver.received.at(i)?.headers.get("webhook-id");
  assert.deepEqual([receiver.received.length, idOf(2)], [3, failed]);
  assert.match(await replay(0, ...asked), /^0 orders, /);
  assert.match(await replay(0, "--all", "--type", "MatchFound", ...asked), /^0 orders, /);
  assert.equal((await act(stage, endpoint_id, "pause")).status, 200);
  assert.match(await replay(0, "--all", ...asked), /^2 orders, /);
  await untilAllAre(stage, ["PARKED"]);
  assert.equal((await act(stage, endpoint_id, "resume")).status, 200);
  await until("both are sent again", () => Promise.resolve(receiver.received.length === 5));
  assert.deepEqual([idOf(3), idOf(4)].toSorted(), [sent, failed].toSorted());
  const { operations } = await look(stage.url, "/debug/notification/operations");
  const kinds = operations.map(({ kind, layer, who }: Record<string, string>) =>
    `${kind} ${layer} ${who}`
  );
  assert.deepEqual(kinds, Array(2).fill("REPLAY order kim"));
  assert.equal((await ops(stage, "endpoints", "replay", endpoint_id)).code, 2);
  const unknown = ["endpoints", "replay", crypto.randomUUID(), "--from", "1h", ...asked];
  assert.match((await ops(stage, ...unknown)).errors, /is not the id of an endpoint/);
});

Deno.test("webhooks are sent again with the form of the console, once it is signed", async () => {
  await using stage = await startOrders({ NOTIFICATION_WEBHOOKS_MAX_ATTEMPTS: "1" });
  const { receiver } = stage;
  const { endpoint_id } = await make(stage);
  receiver.behave(400);
  await give(stage, { endpoint_id });
  await untilAllAre(stage, ["ABORTED"]);
  receiver.behave(200);
  const browser = browserOf(stage.url);
  const path = `/console/endpoints/replay?endpoint_id=${endpoint_id}`;
  assert.doesNotMatch((await browser.visit(path)).html, /will be sent again/);
  const counted = await browser.visit(`${path}&from=2026-01-01T00:00:00Z`);
  assert.match(counted.html, /<b>1 order<\/b> will be sent again/);
  const fields = {
    ...{ endpoint_id, from: "2026-01-01T00:00:00Z", to: "2999-01-01T00:00:00Z", only: "FAILED" },
    ...{ who: "kim", reason: "", token: formTokenIn(counted.html) },
  };
  const refused = await browser.visit("/console/endpoints/replay", fields);
  assert.equal(refused.status, 400);
  assert.match(refused.html, /reason is required/);
  const foreign = { "Sec-Fetch-Site": "cross-site" };
  const signed = { ...fields, reason: "it is back" };
  const attack = await browser.visit("/console/endpoints/replay", signed, foreign);
  assert.equal(attack.status, 403);
  assert.equal(receiver.received.length, 1);
  const sent = await browser.visit("/console/endpoints/replay", signed);
  assert.equal(sent.status, 303, sent.html);
  await untilAllAre(stage, ["SUCCEEDED"]);
  assert.match((await browser.visit(`${sent.location}`)).html, /1 order will be sent again\./);
});

Deno.test("ops and the console show an endpoint that can't be reached, and what is parked for it", async () => {
  await using stage = await startOrders(unwell);
  const { receiver } = stage;
  const { endpoint_id, secret } = await make(stage, { description: "the shop" });
  await receiver.stop();
  const first = await give(stage, { endpoint_id });
  await until("it is FAILING", async () => {
    const [row] = await stage.rows<{ state: string }>("select state from endpoints");
    return row?.state === "FAILING";
  });
  const second = await give(stage, { endpoint_id });
  await untilAllAre(stage, ["PARKED"]);
  const listed = await said(stage, 1, "endpoints", "--state", "FAILING");
  assert.match(listed, new RegExp(`^${endpoint_id} .* FAILING .* 2 .* CONNECTION_FAILED$`, "m"));
  assert.match(await said(stage, 0, "endpoints", "--state", "ACTIVE"), /no such endpoints/);
  const shown = await said(stage, 1, "endpoints", "show", endpoint_id);
  assert.match(shown, /^description +the shop$/m);
  assert.match(shown, /^parked +2, the oldest /m);
  assert.match(shown, /CONNECTION_FAILED/);
  const parked = await said(stage, 0, "orders", "--endpoint", endpoint_id, "--status", "PARKED");
  assert.match(parked, new RegExp(`${second} .*PARKED[^]*${first} .*PARKED`));
  assert.match(await said(stage, 1, "orders"), /1 endpoint can't be reached: ops endpoints/);
  assert.equal((await ops(stage, "endpoints", "show", crypto.randomUUID())).code, 1);

  const html = await page(stage, `/console/endpoints?endpoint_id=${endpoint_id}`);
  assert.match(html, /FAILING/);
  assert.match(html, /CONNECTION_FAILED/);
  assert.match(html, new RegExp(second));
  assert.match(await page(stage, "/console"), /1 endpoint can&#39;t be reached/);
  const all = await page(stage, "/console/endpoints?state=FAILING");
  assert.match(all, new RegExp(endpoint_id));
  assert.ok(!`${html}${all}${listed}${shown}`.includes(secret), "the secret is shown again");
  assert.doesNotMatch(await page(stage, "/console/endpoints?state=GONE"), new RegExp(endpoint_id));
});
