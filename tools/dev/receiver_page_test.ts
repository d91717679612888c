import assert from "node:assert/strict";
import { Webhook } from "standardwebhooks";
import { startReceiver } from "../receiver/receiver.ts";
import { startReceiverPage } from "./receiver_page.tsx";

const secret = `whsec_${btoa("a secret of an endpoint, 32 bytes")}`;
const other = `whsec_${btoa("another secret of the same length")}`;

Deno.test("the page of webhooks says of each whether it was signed with the endpoint's secret", async () => {
  await using notification = await startReceiver();
  await using page = await startReceiverPage(0);
  const endpoint = { endpoint_id: "e-1", state: "FAILING", failures: 5, last_reason: "<b>" };
  notification.behaveAt("/v1/endpoints?limit=200", { body: '{"endpoints":[]}' });
  notification.behaveAt("/v1/endpoints", {
    status: 201,
    body: JSON.stringify({ ...endpoint, secret }),
  });
  notification.behaveAt("/v1/endpoints/e-1", { body: JSON.stringify(endpoint) });
  assert.equal(await page.register(notification.url), `Webhooks arrive at ${page.url}`);

  await post(page.url, "evt-1", "Signed", secret);
  await post(page.url, "evt-1", "Signed", secret);
  await post(page.url, "evt-2", "Forged", other);
  await post(page.url, "evt-3", "<script>", undefined);
  const shown = await (await fetch(page.url)).text();
  const rows = shown.split("<tr>").slice(2).map((row) => row.replaceAll(/<[^>]*>/g, " "));
  assert.match(rows[0] ?? "", /&lt;script&gt; +evt-3 +not signed, as orders to a url are +once/);
  assert.match(rows[1] ?? "", /Forged +evt-2 +No matching signature found +once/);
  assert.match(rows[2] ?? "", /Signed +evt-1 +verified +2 times/);
  assert.equal(rows.length, 3);
  assert.match(shown, /<strong class="bad">FAILING<\/strong>, 5 failures in a row.*&lt;b&gt;/);
});

Deno.test("the receiver of the page fails on command, and says why it has no endpoint", async () => {
  await using notification = await startReceiver();
  await using page = await startReceiverPage(0);
  notification.behave({ status: 403, body: '{"code":"FORBIDDEN","message":"not for you"}' });
  assert.match(await page.register(notification.url), /^No webhooks arrive at .*: not for you$/);
  const choose = new URLSearchParams({ answer: "500" });
  const chosen = await fetch(`${page.url}/answer`, { method: "POST", body: choose });
  assert.match(await chosen.text(), /It has no endpoint: .*not for you/);
  assert.equal(await post(page.url, "evt-1", "Signed", secret), 500);
});

async function post(
  url: string,
  id: string,
  type: string,
  key: string | undefined,
): Promise<number> {
  const [body, now] = [JSON.stringify({ type }), new Date()];
  const headers = {
    "webhook-id": id,
    "webhook-timestamp": `${Math.floor(now.getTime() / 1_000)}`,
    ...(key ? { "webhook-signature": new Webhook(key).sign(id, now, body) } : {}),
  };
  const answer = await fetch(`${url}/webhooks`, { method: "POST", headers, body });
  await answer.body?.cancel();
  return answer.status;
}
