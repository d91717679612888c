// No other site gets a person's browser to do or show anything here, in a real Chromium. Machines
// without a Chromium skip this.
import assert from "node:assert/strict";
import { call, grant } from "../support/api.ts";
import { type Browser, chromium, inBrowser, inTab, startBrowser, type Tab } from "./browser.ts";
import { countsOf } from "../support/notification.ts";
import { servePages } from "./sites.ts";
import { failingSends, type Stack, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

let stack: Stack;
let browser: Browser;

/** With one dead letter, which another site might want to send back. */
async function prepare(): Promise<void> {
  stack = await startStack({ notification: failingSends });
  browser = await startBrowser(["evil.example"]);
  assert.equal((await grant(stack.entitlement.url, { user_id: "unlucky" })).status, 200);
  await until("it is dead", async () => await letters() === 1);
}

Deno.test.beforeAll(() => chromium ? prepare() : undefined);
Deno.test.afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  await stack?.[Symbol.asyncDispose]();
});

const withTab = (use: (tab: Tab) => Promise<void>) => inTab(browser, use);

const confirmPath = "/console/dead-letters/send-back";
const letters = () => countsOf(stack.place).then((counts) => counts.notification_dlq);
const operations = async () => {
  const { url } = stack.notification;
  return (await call(`${url}/debug/notification/operations?limit=200`)).json.operations.length;
};

inBrowser(
  "a form that another site sends is refused, although the browser is known here",
  async () => {
    const { url } = stack.notification;
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
      // Not even one who knows the token gets through.
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

inBrowser("no other site changes or reads anything by scripts", async () => {
  const { entitlement, notification } = stack;
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

inBrowser("no other site shows a page of ours in a frame", async () => {
  for (const path of ["/console", "/docs", "/console/dead-letters", "/livez", "/metrics"]) {
    const { url } = stack.notification;
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

inBrowser("a site whose name is made to lead to this machine is not answered", async () => {
  for (const { url } of [stack.entitlement, stack.notification]) {
    const rebound = url.replace("127.0.0.1", "evil.example");
    await withTab(async (tab) => {
      for (const path of ["/console", "/v1/users/ann/entitlements", "/metrics"]) {
        await tab.goto(rebound + path);
        assert.match(await tab.evaluate("document.body.innerText"), /"code":"FORBIDDEN"/);
      }
    });
  }
});
