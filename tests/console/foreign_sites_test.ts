// Other sites can't use a person's browser to do or show anything here. These tests use a real
// Chromium and are skipped without one.
import assert from "node:assert/strict";
import { call, grant } from "../support/api.ts";
import { inBrowser } from "../support/browser.ts";
import { countsOf } from "../support/notification.ts";
import { chromiumStack } from "../support/chromium_stack.ts";
import { servePages } from "./sites.ts";
import { failingSends, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

// There is one dead letter, which another site tries to send back.
const consoles = chromiumStack(async () => {
  const stack = await startStack({ notification: failingSends });
  assert.equal((await grant(stack.entitlement.url, { user_id: "unlucky" })).status, 200);
  await until(
    "there is a dead letter",
    async () => (await countsOf(stack.place)).notification_dlq === 1,
  );
  return stack;
}, ["evil.example"]);
const { withTab } = consoles;

const confirmPath = "/console/dead-letters/send-back";
const letters = () => countsOf(consoles.stack.place).then((counts) => counts.notification_dlq);
const operations = async () => {
  const { url } = consoles.stack.notification;
  return (await call(`${url}/debug/notification/operations?limit=200`)).json.operations.length;
};

inBrowser(
  "a form from another site is refused, even with our cookies",
  async () => {
    const { url } = consoles.stack.notification;
    const before = [await letters(), await operations()];
    const form = (token: string) =>
      `<form method=post action="${url}${confirmPath}">
       <input name=token value="${token}"><input name=layer value=delivery>
       <input name=id value=1><input name=who value=eve>
       <input name=reason value=because>
     </form><script>onclick = () => document.forms[0].submit()</script>`;
    await withTab(async (tab) => {
      await tab.goto(`${url}${confirmPath}?layer=delivery&id=1`);
      const token = await tab.evaluate(`document.querySelector("[name=token]").value`);
      assert.match(token, /^[0-9a-f]{32}$/);
      // Even an attacker who knows the token is refused.
      await using attacker = servePages(() => form(token));
      for (const from of [attacker.origin, attacker.elsewhere]) {
        await tab.goto(from);
        await tab.leave(() => tab.evaluate("document.forms[0].submit()"));
        assert.equal(await tab.evaluate("location.origin"), url);
        assert.match(
          await tab.evaluate("document.body.innerText"),
          /this form was not sent from a page of this console/,
          from,
        );
      }
    });
    assert.deepEqual([await letters(), await operations()], before);
  },
);

inBrowser("scripts of another site can't change or read anything", async () => {
  const { entitlement, notification } = consoles.stack;
  const before = [await letters(), await operations(), (await entitlement.counts()).outbox_events];
  const change = JSON.stringify({
    user_id: "eve",
    stock_keeping_unit: "x",
    reason: "r",
    purchase_id: "p",
  });
  const back = JSON.stringify({ layer: "delivery", error: "x", who: "eve", reason: "r" });
  const attempts: [string, string, string][] = [
    [`${entitlement.url}/v1/entitlements/grants`, "application/json", change],
    [`${entitlement.url}/v1/entitlements/grants`, "text/plain", change],
    [`${notification.url}/operations/notification/dead-letters/send-back`, "text/plain", back],
    [
      `${notification.url}/operations/notification/dead-letters/send-back`,
      "application/json",
      back,
    ],
    [`${notification.url}${confirmPath}`, "application/x-www-form-urlencoded", "layer=delivery"],
  ];
  await using attacker = servePages(() => "<title>evil</title>");
  for (const from of [attacker.origin, attacker.elsewhere]) {
    await withTab(async (tab) => {
      await tab.goto(from);
      for (const [target, type, body] of attempts) {
        for (const mode of ["cors", "no-cors"]) {
          const headers = { "Content-Type": type, "Idempotency-Key": crypto.randomUUID() };
          const init = { method: "POST", mode, headers, body, credentials: "include" };
          const read = await tab.evaluate(
            `fetch(${JSON.stringify(target)}, ${JSON.stringify(init)})
               .then((answer) => answer.text(), () => "refused")`,
          );
          assert.ok(read === "refused" || read === "", `${mode} ${target}: ${read}`);
        }
      }
      const secrets = [
        `${entitlement.url}/v1/users/ann/entitlements`,
        `${notification.url}/debug/notification/inbox/ann`,
        `${notification.url}/metrics`,
        `${notification.url}/console/inbox?user_id=ann`,
      ];
      for (const secret of secrets) {
        for (const mode of ["cors", "no-cors"]) {
          const read = await tab.evaluate(
            `fetch(${JSON.stringify(secret)}, { mode: "${mode}", credentials: "include" })
               .then((answer) => answer.text(), () => "refused")`,
          );
          assert.ok(read === "refused", `${mode} ${secret}: ${read}`);
        }
      }
    });
  }
  const after = [await letters(), await operations(), (await entitlement.counts()).outbox_events];
  assert.deepEqual(after, before);
});

inBrowser("another site can't show a page of ours in a frame", async () => {
  for (const path of ["/console", "/docs", "/console/dead-letters", "/livez", "/metrics"]) {
    const { url } = consoles.stack.notification;
    await using attacker = servePages(() => `<iframe src="${url}${path}"></iframe>`);
    for (const from of [attacker.origin, attacker.elsewhere]) {
      await withTab(async (tab) => {
        await tab.goto(from);
        await until("it is refused", () => tab.problems.length > 0);
        assert.match(tab.problems.join(), /Refused to (frame|display)|frame-ancestors|X-Frame/i);
      });
    }
  }
});

inBrowser("a foreign host name that resolves to this machine is refused", async () => {
  for (const { url } of [consoles.stack.entitlement, consoles.stack.notification]) {
    const rebound = url.replace("127.0.0.1", "evil.example");
    await withTab(async (tab) => {
      for (const path of ["/console", "/v1/users/ann/entitlements", "/metrics"]) {
        await tab.goto(rebound + path);
        assert.match(await tab.evaluate("document.body.innerText"), /"code":"FORBIDDEN"/);
      }
    });
  }
});
