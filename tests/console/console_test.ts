// The console as HTML over HTTP: what is on its pages, how they are protected, and what its forms do.
// How it looks and behaves in a browser is in console_browser_test.ts.
import assert from "node:assert/strict";
import { assertError, call, grant } from "../support/api.ts";
import { ask, startEntitlement } from "../support/entitlement.ts";
import { keep } from "../../tools/servers/evidence.ts";
import { countsOf } from "../support/notification.ts";
import { failingSends, look, type Stack, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

const pagesOf = {
  entitlement: ["", "/timeline", "/reconciliation", "/dead-letters", "/operations"],
  notification: ["", "/timeline", "/inbox", "/dead-letters", "/operations"],
};
const error = "Failure injected for this user";

async function page(url: string): Promise<{ status: number; html: string; headers: Headers }> {
  const answer = await fetch(url, { redirect: "manual" });
  const html = await answer.text();
  keep("pages", html);
  return { status: answer.status, html, headers: answer.headers };
}

Deno.test("nothing of the console is there unless the debug side is switched on", async () => {
  await using kenri = await startEntitlement();
  for (const path of ["", "/timeline", "/live", "/live.js", "/dead-letters/send-back"]) {
    assertError(await call(`${kenri.url}/console${path}`), 404, "NOT_FOUND");
  }
});

Deno.test("every page is whole by itself, and allows nothing that is not the service's own", async () => {
  await using stack = await startStack();
  for (const service of ["entitlement", "notification"] as const) {
    for (const path of pagesOf[service]) {
      const { status, html, headers } = await page(`${stack[service].url}/console${path}`);
      assert.equal(status, 200, `${path}: ${html}`);
      assert.match(html, /^<!DOCTYPE html>\n<html lang="en">/);
      assert.match(html, /<h1>[^<]+<\/h1>/);
      assert.match(html, /aria-current="page"/);
      assert.doesNotMatch(html, /<script>|<style|style=|onclick/, "nothing inline");
      const policy = headers.get("Content-Security-Policy") ?? "";
      for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'"]) {
        assert.ok(policy.split("; ").includes(part), policy);
      }
      assert.equal(headers.get("X-Content-Type-Options"), "nosniff");
      assert.equal(headers.get("Referrer-Policy"), "same-origin");
      assert.equal(headers.get("Cache-Control"), "no-store");
      assert.match(headers.get("Content-Type") ?? "", /^text\/html; charset=utf-8$/i);
    }
    for (const [file, type] of [["live.js", "text/javascript"], ["style.css", "text/css"]]) {
      const { status, headers } = await page(`${stack[service].url}/console/${file}`);
      assert.deepEqual([status, headers.get("Content-Type")], [200, `${type}; charset=utf-8`]);
    }
    const posted = await call(`${stack[service].url}/console`, { method: "POST" });
    assertError(posted, 405, "METHOD_NOT_ALLOWED");
  }
});

Deno.test("the halves lead to each other only where a setting says so", async () => {
  await using alone = await startStack();
  const { html: without } = await page(`${alone.entitlement.url}/console`);
  assert.doesNotMatch(without, /↗/);
  await using stack = await startStack({
    entitlement: { ENTITLEMENT_CONSOLE_PEER_URL: "https://kenri.example/two/" },
  });
  await grant(stack.entitlement.url, { user_id: "ann" }, "k1");
  const { html } = await page(`${stack.entitlement.url}/console`);
  assert.match(html, /<a class="peer" href="https:\/\/kenri\.example\/two\/console">/);
  const { html: found } = await page(
    `${stack.entitlement.url}/console/timeline?by=idempotency_key&q=k1`,
  );
  assert.match(found, /href="https:\/\/kenri\.example\/two\/console\/timeline\?by=event_id&amp;q=/);
});

Deno.test("an event is found by its user, its id and its key, and its way is told", async () => {
  await using stack = await startStack({ notification: failingSends });
  const { entitlement, notification, place } = stack;
  await grant(entitlement.url, { user_id: "unlucky ü&", stock_keeping_unit: "film" }, "k-1");
  await until("it is dead", async () => (await countsOf(place)).notification_dlq === 1);
  const { events: [event] } = await look(
    notification.url,
    `/debug/notification/timeline?user_id=${encodeURIComponent("unlucky ü&")}`,
  );
  const find = (url: string, by: string, q: string) =>
    page(`${url}/console/timeline?${new URLSearchParams({ by, q })}`);
  for (const [by, q] of [["event_id", event.event_id], ["idempotency_key", "k-1"]]) {
    const { html } = await find(entitlement.url, by ?? "", q ?? "");
    assert.match(html, /CHANGED[^]*PUBLISHED[^]*stream sequence 1/);
    assert.match(html, /unlucky ü&amp;/);
  }
  const { html } = await find(notification.url, "user_id", " unlucky ü& ");
  assert.match(html, new RegExp(`RECEIVED[^]*RETRIED[^]*${error}[^]*GAVE_UP`));
  assert.match((await find(entitlement.url, "user_id", "nobody")).html, /No event of/);
  const bad = await find(entitlement.url, "event_id", "no-uuid");
  assert.equal(bad.status, 400);
  assert.match(bad.html, /role="alert">event_id must be UUIDs/);
  const inbox = await page(
    `${notification.url}/console/inbox?user_id=${encodeURIComponent("unlucky ü&")}`,
  );
  assert.match(inbox.html, /EntitlementGranted[^]*FAILED[^]*&quot;film&quot;/);
});

Deno.test("what comes from outside is shown as text wherever it is shown", async () => {
  await using stack = await startStack({
    notification: { ...failingSends, NOTIFICATION_DELIVERY_FAILURE_INJECTION_USER_ID_PREFIX: "<" },
  });
  const { entitlement, notification, place } = stack;
  const evil = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>`;
  const answer = await grant(entitlement.url, {
    user_id: evil,
    stock_keeping_unit: evil,
    reason: evil,
    purchase_id: evil,
  }, "<script>");
  assert.equal(answer.status, 200, answer.text);
  await until("it is dead", async () => (await countsOf(place)).notification_dlq === 1);
  await ask(place.ownerUrl, "update notification_dlq set error_message = $1", [evil]);
  const q = encodeURIComponent(evil);
  const paths = {
    entitlement: [
      `/timeline?by=user_id&q=${q}`,
      `/timeline?by=event_id&q=${q}`,
      "/timeline?by=idempotency_key&q=<script>",
      `/timeline?by=${q}&q=${q}`,
      `/dead-letters?layer=${q}`,
      `/dead-letters?error=${q}`,
      `/dead-letters/one?layer=outbox&id=${q}`,
      `/dead-letters/send-back?layer=outbox&id=${q}`,
      `/operations?cursor=${q}`,
    ],
    notification: [
      `/timeline?by=user_id&q=${q}`,
      `/inbox?user_id=${q}`,
      "/dead-letters",
      "/dead-letters/one?layer=delivery&id=1",
      `/dead-letters/send-back?layer=delivery&error=${q}`,
    ],
  };
  for (const service of ["entitlement", "notification"] as const) {
    for (const path of paths[service]) {
      const { html } = await page(`${stack[service].url}/console${path}`);
      assert.match(html, /^<!DOCTYPE html>/, path);
      assert.doesNotMatch(html, /<script>|<img/, path);
    }
  }
  const { html } = await page(`${notification.url}/console/dead-letters`);
  assert.match(html, /&lt;script&gt;alert\(1\)&lt;\/script&gt;/);
});

interface Form {
  token: string;
  cookie: string;
  html: string;
}

async function formOf(url: string, query: Record<string, string>): Promise<Form> {
  const { html, headers } = await page(
    `${url}/console/dead-letters/send-back?${new URLSearchParams(query)}`,
  );
  const [, token = ""] = /name="token" value="([0-9a-f]{32})"/.exec(html) ?? [];
  const [cookie = ""] = headers.getSetCookie();
  assert.match(cookie, /^kenri_form=[0-9a-f]{32}; Path=\/console; HttpOnly; SameSite=Strict$/);
  return { token, cookie: cookie.split(";")[0] ?? "", html };
}

function send(
  url: string,
  fields: Record<string, string> | [string, string][],
  headers: Record<string, string>,
): Promise<Response> {
  return fetch(`${url}/console/dead-letters/send-back`, {
    method: "POST",
    headers,
    body: new URLSearchParams(fields),
    redirect: "manual",
  });
}

const signed = { who: "kim", reason: "the channel is back" };

async function deadOnes(stack: Stack, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    await grant(stack.entitlement.url, { user_id: `unlucky-${i}` });
  }
  const { place } = stack;
  await until("they are dead", async () => (await countsOf(place)).notification_dlq === count);
}

Deno.test("all of an error go back after a look at how many, and who and why are kept", async () => {
  await using stack = await startStack({ notification: failingSends });
  const { notification } = stack;
  await deadOnes(stack, 3);
  const { url } = notification;
  const { token, cookie, html } = await formOf(url, { layer: "delivery", error });
  assert.match(html, /<b>3 dead letters<\/b> of the layer delivery will be sent back/);

  const fields = { token, layer: "delivery", error };
  const unsigned = await send(url, { ...fields, who: "kim", reason: "  " }, { Cookie: cookie });
  assert.equal(unsigned.status, 400);
  const again = await unsigned.text();
  assert.match(again, /role="alert">reason is required/);
  assert.match(again, /name="who" value="kim"/, "what was typed is kept");
  const path = "/debug/notification/operations";
  assert.deepEqual((await look(url, path)).operations, []);

  const sent = await send(url, { ...fields, ...signed }, { Cookie: cookie });
  assert.equal(sent.status, 303, await sent.text());
  assert.equal(sent.headers.get("Location"), "/console/dead-letters?layer=delivery");
  const note = sent.headers.getSetCookie().map((one) => one.split(";")[0]).join("; ");
  const after = await fetch(`${url}/console/dead-letters`, { headers: { Cookie: note } });
  assert.match(await after.text(), /role="status">3 dead letters sent back\.</);
  assert.match(after.headers.getSetCookie().join(), /kenri_note=; Max-Age=0/, "said once");
  const { operations: [operation] } = await look(url, path);
  assert.deepEqual([operation.who, operation.reason, operation.items.length], [
    ...Object.values(signed),
    3,
  ]);
  const { html: record } = await page(`${url}/console/operations`);
  assert.match(record, /SEND_BACK[^]*kim[^]*the channel is back[^]*3 items/);
});

Deno.test("chosen ones go back, and what is no dead letter any more is said", async () => {
  await using stack = await startStack({ notification: failingSends });
  await deadOnes(stack, 2);
  const { notification: { url }, place } = stack;
  const { token, cookie, html } = await formOf(url, { layer: "delivery", id: "1" });
  assert.match(html, /<b>1 dead letter<\/b>/);
  await ask(place.ownerUrl, "delete from notification_dlq where dlq_id = 2");
  const fields = { token, layer: "delivery", ...signed };
  const chosen: [string, string][] = [...Object.entries(fields), ["id", "1"], ["id", "2"]];
  const sent = await send(url, chosen, { Cookie: cookie });
  assert.equal(sent.status, 303, await sent.text());
  const [note = ""] = sent.headers.getSetCookie();
  const after = await fetch(`${url}/console/dead-letters`, { headers: { Cookie: note } });
  assert.match(await after.text(), /1 dead letter sent back\. 1 was no longer dead\./);
});

Deno.test("a form that another site sends is refused and changes nothing", async () => {
  await using stack = await startStack({ notification: failingSends });
  await deadOnes(stack, 1);
  const { notification: { url }, place } = stack;
  const { token, cookie } = await formOf(url, { layer: "delivery", id: "1" });
  const fields = { token, layer: "delivery", id: "1", ...signed };
  const other = "0".repeat(32);
  const cases: [Record<string, string>, Record<string, string>][] = [
    [fields, {}],
    [fields, { Cookie: `kenri_form=${other}` }],
    [{ ...fields, token: other }, { Cookie: cookie }],
    [{ ...fields, token: "" }, { Cookie: "kenri_form=" }],
    [fields, { Cookie: cookie, "Sec-Fetch-Site": "cross-site" }],
    [fields, { Cookie: cookie, "Sec-Fetch-Site": "same-site" }],
    [fields, { Cookie: cookie, Origin: "https://evil.example" }],
    [fields, { Cookie: cookie, Origin: "null" }],
  ];
  for (const [body, headers] of cases) {
    const answer = await send(url, body, headers);
    assert.equal(answer.status, 403, JSON.stringify(headers));
    assert.match(await answer.text(), /role="alert">this form/);
  }
  const json = await call(`${url}/console/dead-letters/send-back`, {
    method: "POST",
    headers: { Cookie: cookie, "Content-Type": "application/json" },
    body: JSON.stringify(fields),
  });
  assert.equal(json.status, 415);
  assert.equal((await countsOf(place)).notification_dlq, 1);

  const own = await send(url, fields, { Cookie: cookie, Origin: url });
  assert.equal(own.status, 303, await own.text());
});

Deno.test("without its database the pipeline still shows what the process knows", async () => {
  await using kenri = await startEntitlement({ ENTITLEMENT_DEBUG_ENABLED: "true" });
  await ask(kenri.database.ownerUrl, "alter table outbox_events rename to gone");
  const { status, html } = await page(`${kenri.url}/console`);
  assert.equal(status, 200);
  assert.match(html, /<p class="note bad">the request failed because of an error/);
  assert.match(html, /unknown/);
  await ask(kenri.database.ownerUrl, "alter table gone rename to outbox_events");
});
