// The form that sends dead letters back, as a browser without scripts uses it.
import assert from "node:assert/strict";
import { call, grant } from "../support/api.ts";
import { ask } from "../support/entitlement.ts";
import { countsOf } from "../support/notification.ts";
import { type Browser, browserOf, formTokenIn } from "./persons.ts";
import { failingSends, look, type Stack, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

const path = "/console/dead-letters/send-back";
const error = "Failure injected for this user";
const signature = { who: "kim", reason: "the channel is back" };

async function startWithDead(count: number): Promise<Stack> {
  const stack = await startStack({ notification: failingSends });
  for (let i = 0; i < count; i++) {
    await grant(stack.entitlement.url, { user_id: `unlucky-${i}` });
  }
  const { place } = stack;
  await until("they are dead", async () => (await countsOf(place)).notification_dlq === count);
  return stack;
}

interface Form {
  browser: Browser;
  html: string;
  fields: { token: string; layer: string };
}

async function openForm(url: string, query: Record<string, string>): Promise<Form> {
  const browser = browserOf(url);
  const layer = "delivery";
  const { html } = await browser.visit(`${path}?${new URLSearchParams({ layer, ...query })}`);
  const token = formTokenIn(html);
  assert.match(token, /^[0-9a-f]{32}$/);
  assert.equal(browser.cookies.get("kenri_form"), token);
  assert.equal(browser.rules.get("kenri_form"), "Path=/console; HttpOnly; SameSite=Strict");
  return { browser, html, fields: { token, layer } };
}

Deno.test("all dead letters of an error are sent back after a page with their number, and logged", async () => {
  await using stack = await startWithDead(3);
  const { url } = stack.notification;
  const { browser, html, fields } = await openForm(url, { error });
  assert.match(html, /<b>3 dead letters<\/b> of the layer delivery will be sent back/);

  const unsigned = await browser.visit(path, { ...fields, error, who: "kim", reason: "  " });
  assert.equal(unsigned.status, 400);
  assert.match(unsigned.html, /role="alert">reason is required/);
  assert.match(unsigned.html, /name="who" value="kim"/, "what was typed is kept");
  const operations = "/debug/notification/operations";
  assert.deepEqual((await look(url, operations)).operations, []);

  const sent = await browser.visit(path, { ...fields, error, ...signature });
  const list = "/console/dead-letters?layer=delivery";
  assert.deepEqual([sent.status, sent.location], [303, list], sent.html);
  const after = await browser.visit(list);
  assert.match(after.html, /role="status">3 dead letters sent back\.</);
  assert.doesNotMatch((await browser.visit(list)).html, /sent back\.</, "shown once");
  const { operations: [{ who, reason, items }] } = await look(url, operations);
  assert.deepEqual([{ who, reason }, items.length], [signature, 3]);
  const log = await browser.visit("/console/operations");
  assert.match(log.html, /SEND_BACK[^]*kim[^]*the channel is back[^]*3 items/);
});

Deno.test("selected dead letters are sent back, and those that are gone are counted", async () => {
  await using stack = await startWithDead(2);
  const { notification: { url }, place } = stack;
  const { browser, html, fields } = await openForm(url, { id: "1" });
  assert.match(html, /<b>1 dead letter<\/b>/);
  await ask(place.ownerUrl, "delete from notification_dlq where dlq_id = 2");
  const selected = [...Object.entries({ ...fields, ...signature }), ["id", "1"], ["id", "2"]];
  const sent = await browser.visit(path, selected as [string, string][]);
  assert.equal(sent.status, 303, sent.html);
  const { html: after } = await browser.visit("/console/dead-letters");
  assert.match(after, /1 dead letter sent back\. 1 was no longer dead\./);
});

Deno.test("a form from another site is refused and changes nothing", async () => {
  await using stack = await startWithDead(1);
  const { notification: { url }, place } = stack;
  const { browser, fields: { token, layer } } = await openForm(url, { id: "1" });
  const fields = { token, layer, id: "1", ...signature };
  const Cookie = `kenri_form=${browser.cookies.get("kenri_form")}`;
  const send = (body: Record<string, string>, headers: Record<string, string>) =>
    fetch(url + path, {
      method: "POST",
      headers,
      body: new URLSearchParams(body),
      redirect: "manual",
    });
  const other = "0".repeat(32);
  const cases: [Record<string, string>, Record<string, string>][] = [
    [fields, {}],
    [fields, { Cookie: `kenri_form=${other}` }],
    [{ ...fields, token: other }, { Cookie }],
    [{ ...fields, token: "" }, { Cookie: "kenri_form=" }],
    [fields, { Cookie, "Sec-Fetch-Site": "cross-site" }],
    [fields, { Cookie, "Sec-Fetch-Site": "same-site" }],
    [fields, { Cookie, Origin: "https://evil.example" }],
    [fields, { Cookie, Origin: "null" }],
  ];
  for (const [body, headers] of cases) {
    const answer = await send(body, headers);
    assert.equal(answer.status, 403, JSON.stringify(headers));
    assert.match(await answer.text(), /role="alert">this form/);
  }
  const json = await call(url + path, {
    method: "POST",
    headers: { Cookie, "Content-Type": "application/json" },
    body: JSON.stringify(fields),
  });
  assert.equal(json.status, 415);
  assert.equal((await countsOf(place)).notification_dlq, 1);

  const own = await send(fields, { Cookie, Origin: url });
  assert.equal(own.status, 303, await own.text());
});
