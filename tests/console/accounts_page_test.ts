// The pages of accounts in the console: found by id, by email and by identity, and changed by forms.
import assert from "node:assert/strict";
import { newClient, tokensOf } from "../support/access.ts";
import { resolve, startAccount } from "../support/account.ts";
import { browserOf, formTokenIn, signIn } from "./persons.ts";

const path = "/console/accounts";
const debug = { ACCOUNT_DEBUG_ENABLED: "true" };
const hostile = `<img src=x onerror=alert(1)>`;
const ann = { provider: "https://issuer.example", subject: hostile, name: `Ann ${hostile}` };
const signature = { who: "kim", reason: `spam ${hostile}` };

Deno.test("an account is found, suspended and resumed, and its audit says by whom and why", async () => {
  await using account = await startAccount(debug);
  const { user_id } = await resolve(account, { ...ann, email: "ann@example.com" });
  const browser = browserOf(account.url);
  const { html: overview } = await browser.visit("/console");
  assert.match(overview, /<h2>Logins<\/h2>[^]*<h2>Outbox<\/h2>/);
  const page = `${path}?user_id=${user_id}`;
  const { html } = await browser.visit(page);
  assert.match(html, /Ann &lt;img src=x[^]*class="state good">ACTIVE/);
  assert.match(html, new RegExp(`${path}/change\\?user_id=${user_id}&amp;action=suspend`));
  assert.doesNotMatch(html, /ann@example\.com|<img/);

  for (const [action, state] of [["suspend", "SUSPENDED"], ["resume", "ACTIVE"]] as const) {
    const form = await browser.visit(`${path}/change?user_id=${user_id}&action=${action}`);
    const fields = { token: formTokenIn(form.html), user_id, action };
    const unsigned = await browser.visit(`${path}/change`, { ...fields, who: "kim", reason: " " });
    assert.equal(unsigned.status, 400);
    assert.match(unsigned.html, /role="alert">reason is required/);
    const sent = await browser.visit(`${path}/change`, { ...fields, ...signature });
    assert.deepEqual([sent.status, sent.location], [303, page], sent.html);
    const after = await browser.visit(page);
    assert.match(after.html, /role="status">The account was changed\.</);
    assert.match(after.html, new RegExp(`class="state (good|bad)">${state}`));
    assert.match(after.html, new RegExp(`${action.toUpperCase()}[^]*kim[^]*spam &lt;img`));
    assert.doesNotMatch(after.html, /<img/);
  }
  const unknown = await browser.visit(`${path}?user_id=${crypto.randomUUID()}`);
  assert.match(unknown.html, /There is no such account\./);
});

Deno.test("accounts are found by email and identity with a form, and no url has either", async () => {
  await using account = await startAccount(debug);
  const { user_id } = await resolve(account, { ...ann, email: "ann@example.com" });
  const browser = browserOf(account.url);
  const { html } = await browser.visit(`${path}/find`);
  assert.match(html, new RegExp(`method="post" action="${path}/find"`));
  const token = formTokenIn(html);
  for (
    const search of [{ email: "ANN@example.com" }, { provider: ann.provider, subject: ann.subject }]
  ) {
    const found = await browser.visit(`${path}/find`, { token, ...search });
    assert.equal(found.status, 200);
    assert.match(found.html, new RegExp(`${path}\\?user_id=${user_id}`));
    assert.doesNotMatch(found.html, /example\.com|<img/i);
  }
  const foreign = await browser.visit(`${path}/find`, { token, email: "ann@example.com" }, {
    "Sec-Fetch-Site": "cross-site",
  });
  assert.equal(foreign.status, 403);
});

Deno.test("the roles of a user are set by a form, and the last ADMIN keeps the role", async () => {
  await using account = await startAccount(debug);
  const { user_id } = await resolve(account, ann);
  const browser = browserOf(account.url);
  const change = `${path}/change`;
  const set = async (...roles: string[]) => {
    const { html } = await browser.visit(`${change}?user_id=${user_id}&action=roles`);
    const fields = { token: formTokenIn(html), user_id, action: "roles", ...signature };
    return await browser.visit(change, [
      ...Object.entries(fields),
      ...roles.map((role): [string, string] => ["role", role]),
    ]);
  };
  assert.equal((await set("USER", "ADMIN")).status, 303);
  const { html } = await browser.visit(`${path}?user_id=${user_id}`);
  assert.match(html, /USER, ADMIN/);
  const last = await set("USER");
  assert.equal(last.status, 400);
  assert.match(last.html, /role="alert">the user is the last ADMIN/);
});

Deno.test("a page of accounts needs the scope that the API needs", async () => {
  const [reader, admin] = [
    newClient("eve", "debug:read"),
    newClient("kim", "debug:read", "operations:write", "accounts:admin"),
  ];
  await using account = await startAccount({ ...debug, ...tokensOf(reader, admin) });
  const { user_id } = await (await fetch(`${account.url}/v1/identities:resolve`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(ann),
  })).json();
  assert.equal(user_id, undefined, "a credential is required");
  const page = `${path}?user_id=${crypto.randomUUID()}`;
  for (const [client, status] of [[reader, 403], [admin, 200]] as const) {
    const browser = browserOf(account.url);
    await signIn(browser, client.token);
    assert.equal((await browser.visit(page)).status, status);
  }
});
