// The pages of the console as HTML over HTTP: what they show and how they are protected. Its forms
// are in console_forms_test.ts, its looks and behaviour in a browser in console_browser_test.ts.
import assert from "node:assert/strict";
import { assertError, call, grant } from "../support/api.ts";
import { ask, startEntitlement } from "../support/entitlement.ts";
import { keep } from "../../tools/servers/evidence.ts";
import { countsOf } from "../support/notification.ts";
import { failingSends, look, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

const pagesOf = {
  entitlement: ["", "/timeline", "/points", "/reconciliation", "/dead-letters", "/operations"],
  notification: [
    "",
    "/timeline",
    "/inbox",
    "/orders",
    "/endpoints",
    "/dead-letters",
    "/operations",
  ],
};
const error = "Failure injected for this user";

async function page(url: string): Promise<{ status: number; html: string; headers: Headers }> {
  const answer = await fetch(url, { redirect: "manual" });
  const html = await answer.text();
  keep("pages", html);
  return { status: answer.status, html, headers: answer.headers };
}

Deno.test("the console exists only if debug is enabled", async () => {
  await using kenri = await startEntitlement();
  for (const path of ["", "/timeline", "/live", "/live.js", "/dead-letters/send-back"]) {
    assertError(await call(`${kenri.url}/console${path}`), 404, "NOT_FOUND");
  }
});

Deno.test("every page is complete, and allows only content of its own service", async () => {
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

Deno.test("the consoles link to each other only if a setting names the other one", async () => {
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

Deno.test("an event is found by its user, its id and its key, with all its steps", async () => {
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
  assert.match((await find(entitlement.url, "user_id", "nobody")).html, /has no event for/);
  const bad = await find(entitlement.url, "event_id", "no-uuid");
  assert.equal(bad.status, 400);
  assert.match(bad.html, /role="alert">event_id must be UUIDs/);
  const inbox = await page(
    `${notification.url}/console/inbox?user_id=${encodeURIComponent("unlucky ü&")}`,
  );
  assert.match(inbox.html, /EntitlementGranted[^]*FAILED[^]*&quot;film&quot;/);
});

Deno.test("text from outside is shown as text on every page", async () => {
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

Deno.test("without the database the pipeline still shows the counters of the process", async () => {
  await using kenri = await startEntitlement({ ENTITLEMENT_DEBUG_ENABLED: "true" });
  await ask(kenri.database.ownerUrl, "alter table outbox_events rename to gone");
  const { status, html } = await page(`${kenri.url}/console`);
  assert.equal(status, 200);
  assert.match(html, /<p class="note bad">the request failed because of an error/);
  assert.match(html, /unknown/);
  await ask(kenri.database.ownerUrl, "alter table gone rename to outbox_events");
});
