// What comes from outside stays text on every page, in a real Chromium. Machines without a Chromium
// skip this.
import assert from "node:assert/strict";
import { bearer } from "../support/access.ts";
import { call, grant } from "../support/api.ts";
import { type Browser, chromium, inBrowser, inTab, startBrowser, type Tab } from "./browser.ts";
import { ask, startEntitlement } from "../support/entitlement.ts";
import { startIssuer } from "../access/issuer.ts";
import { countsOf } from "../support/notification.ts";
import { servePages } from "./sites.ts";
import { failingSends, operate, type Stack, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

// Each calls the canary where it is more than text: in an element, an attribute, a script, a style, a
// url, a template, after decoding once more, or hidden by characters that turn the direction.
const hostile = [
  `<script>canary("script")</script>`,
  `"><img src=x onerror=canary("img")>`,
  `'><svg onload=canary("svg")></svg>`,
  `</title></textarea></style></pre><script>canary("closed")</script>`,
  `" autofocus onfocus=canary("attribute") tabindex=1 x="`,
  `' onpointerenter=canary("pointer") style=position:fixed;inset:0 x='`,
  `javascript:canary("url")//`,
  `data:text/html,<script>canary("data")</script>`,
  "${canary('literal')}{{constructor.constructor('canary(1)')()}}<%=canary(1)%>#{canary(1)}",
  `&lt;script&gt;canary("entity")&lt;/script&gt;%3Cscript%3Ecanary(1)%3C/script%3E`,
  `<iframe srcdoc="<script>parent.canary('frame')</script>"></iframe>`,
  `<base href=//evil.example><meta http-equiv=refresh content="0;url=//evil.example">`,
  `<link rel=stylesheet href=//evil.example/x><form action=//evil.example><button>`,
  `\\u003cscript\\u003ecanary(1)\\u003c/script\\u003e';canary("js")//"-canary("js")-"`,
  `\u202e\u2066<b>\u200b\ufeff\u2028canary\u2069</b>`,
  `__proto__`,
];

let stack: Stack;
let browser: Browser;
const worker = `<img src=x onerror=canary("worker")>`;

async function prepare(): Promise<void> {
  const settings = { ...failingSends, HOSTNAME: worker };
  stack = await startStack({
    entitlement: { HOSTNAME: worker },
    notification: settings,
  });
  browser = await startBrowser(["evil.example"]);
  const { entitlement, notification, place } = stack;
  for (const [i, text] of hostile.entries()) {
    const answer = await grant(entitlement.url, {
      user_id: `unlucky${text}`,
      stock_keeping_unit: text,
      reason: text,
      purchase_id: text,
    }, keyOf(i, text));
    assert.equal(answer.status, 200, `${text}: ${answer.text}`);
  }
  const dead = async () => (await countsOf(place)).notification_dlq === hostile.length;
  await until("all are dead", dead);
  for (const [i, text] of hostile.entries()) {
    const id = `${i + 1}`;
    await operate(notification.url, "/operations/notification/dead-letters/send-back", {
      layer: "delivery",
      ids: [id],
      who: text,
      reason: text,
    });
  }
  await until("all are dead again", dead);
  await spoilTables();
}

/** What a channel, a broker or another release may have written. */
async function spoilTables(): Promise<void> {
  const { entitlement: { database }, place } = stack;
  for (const [i, text] of hostile.entries()) {
    await ask(
      place.ownerUrl,
      `with numbered as (
         select notification_id, row_number() over (order by dlq_id) as number
         from notification_dlq)
       update notification_dlq dead set error_message = $1
       from numbered
       where numbered.notification_id = dead.notification_id and number = $2`,
      [`${text}\u0001\u001b[2J`, i + 1],
    );
    await ask(
      database.ownerUrl,
      `insert into outbox_events
         (event_id, event_type, aggregate_key, payload, status, last_error, locked_by)
       values (gen_random_uuid(), $1, $1, jsonb_build_object($1::text, $1), 'FAILED', $1, $1)`,
      [text],
    );
    await ask(
      database.ownerUrl,
      `insert into outbox_events
         (event_id, event_type, aggregate_key, payload, next_retry_at, last_error)
       values (gen_random_uuid(), $1, $1, '{}', now() + interval '1 h', $1)`,
      [text],
    );
    await ask(
      database.ownerUrl,
      `insert into unreceived_events
         (event_id, occurred_at, user_id, stock_keeping_unit, version, state)
       values (gen_random_uuid(), now(), $1, $1, 1, 'MISSING')`,
      [text],
    );
  }
}

/** Of visible ASCII characters. */
function keyOf(i: number, text: string): string {
  return `${i}${text.replaceAll(/[^\x21-\x7e]/g, "")}`;
}

Deno.test.beforeAll(() => chromium ? prepare() : undefined);
Deno.test.afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  await stack?.[Symbol.asyncDispose]();
});

const withTab = (use: (tab: Tab) => Promise<void>) => inTab(browser, use);

/** Every page of the console, and what else a browser can be led to, with the text in each place. */
function pagesWith(text: string, i: number): string[] {
  const { entitlement, notification } = stack;
  const query = (given: Record<string, string>) => `?${new URLSearchParams(given)}`;
  const path = encodeURIComponent(text);
  const ofBoth = [
    `/console${query({ [text]: text })}#${text}`,
    ...["user_id", "event_id", "idempotency_key", text].map((by) =>
      `/console/timeline${query({ by, q: text })}`
    ),
    `/console/timeline${query({ by: "user_id", q: `unlucky${text}` })}`,
    `/console/dead-letters${query({ layer: text, error: text, cursor: text })}`,
    `/console/dead-letters/one${query({ layer: text, id: text })}`,
    `/console/dead-letters/send-back${query({ layer: text, id: text, error: text })}`,
    `/console/operations${query({ cursor: text })}`,
    `/console/${path}`,
    `/${path}${query({ [text]: text })}`,
    `/docs${query({ [text]: text })}#${path}`,
  ];
  // Where nothing is asked for, all hostile texts are shown together.
  const together = i === 0 ? ["/console", "/console/dead-letters", "/console/operations"] : [];
  const ofEntitlement = [
    ...together,
    ...(i === 0 ? ["/console/reconciliation"] : []),
    `/console/timeline${query({ by: "idempotency_key", q: keyOf(i, text) })}`,
    `/console/dead-letters${query({ error: text })}`,
    `/console/dead-letters/send-back${query({ layer: "outbox", error: text })}`,
    `/debug/entitlement/timeline${query({ user_id: `unlucky${text}` })}`,
    `/v1/users/${encodeURIComponent(`unlucky${text}`)}/entitlements`,
  ];
  const error = `${text}\u0001\u001b[2J`;
  const ofNotification = [
    ...together,
    `/console/dead-letters${query({ layer: "delivery", error })}`,
    `/console/dead-letters/one${query({ layer: "delivery", id: `${hostile.length + i + 1}` })}`,
    `/console/dead-letters/send-back${query({ layer: "delivery", error })}`,
    `/console/inbox${query({ user_id: `unlucky${text}` })}`,
    `/console/inbox${query({ user_id: text, cursor: text })}`,
    `/debug/notification/inbox/${encodeURIComponent(`unlucky${text}`)}`,
  ];
  return [
    ...[...ofBoth, ...ofEntitlement].map((path) => entitlement.url + path),
    ...[...ofBoth, ...ofNotification].map((path) => notification.url + path),
  ];
}

// What no page of ours has, and what only text from outside could have made.
const foreign = `[...document.querySelectorAll(
  "script:not([src='/console/live.js']), img, iframe, object, embed, base, meta[http-equiv], " +
  "svg:not(.spark), link:not([href^='/console/']), [style], [autofocus], b > b, textarea"
), ...[...document.querySelectorAll("*")].filter((element) =>
  [...element.attributes].some(({ name, value }) =>
    /^on/.test(name) || (/^(href|src|action|formaction)$/.test(name) && !/^(\\/|#|\\?|$)/.test(value)))
)].map((element) => element.outerHTML)`;

inBrowser(
  "a page without protection sets the canary off, so the tests below can fail",
  async () => {
    await using attacker = servePages((url) =>
      `<title>x</title><p>${new URL(url).searchParams.get("text")}</p>`
    );
    await withTab(async (tab) => {
      const gone: string[] = [];
      for (const text of hostile) {
        await tab.goto(`${attacker.origin}/?${new URLSearchParams({ text })}`);
        // A page that is led elsewhere meanwhile can't be asked.
        const found = await tab.evaluate(foreign).catch(() => ["led elsewhere"]);
        if (found.length > 0) gone.push(text);
      }
      for (const way of ["script", "img", "svg", "closed", "frame"]) {
        assert.ok(tab.alarms.includes(way), `${way}: ${tab.alarms}`);
      }
      assert.ok(gone.length >= 6, `${gone}`);
      assert.ok(tab.origins.size > 1, "requests to elsewhere are seen");
    });
  },
);

inBrowser("no text from outside is ever more than text, on any page", async () => {
  for (const [i, text] of hostile.entries()) {
    await withTab(async (tab) => {
      let shown = 0;
      for (const url of pagesWith(text, i)) {
        await tab.goto(url);
        // Chromium shows JSON in a page of its own making.
        const page = await tab.evaluate(`dispatchEvent(new PointerEvent("pointermove")) && ({
          shown: document.body.textContent.includes(${JSON.stringify(text)}),
          foreign: document.contentType === "application/json" ? [] : ${foreign},
        })`);
        if (page.shown) shown++;
        assert.deepEqual(page.foreign, [], url);
      }
      assert.ok(shown >= 8, `${text} is shown on ${shown} pages`);
      const own = new Set([stack.entitlement.url, stack.notification.url]);
      assert.deepEqual([...tab.origins].filter((origin) => !own.has(origin)), []);
      assert.deepEqual(tab.alarms, []);
      // What is not found is said to be so; a refusal by the policy would be said here, too.
      const others = tab.problems.filter((problem) =>
        !/Failed to load resource: the server responded with a status of (400|404|414)/.test(
          problem,
        )
      );
      assert.deepEqual(others, []);
    });
  }
});

inBrowser("what the live figures bring is text, too", async () => {
  await withTab(async (tab) => {
    await tab.goto(`${stack.entitlement.url}/console`);
    const isLive = () => tab.evaluate("document.body.innerText.includes('Live: ')");
    await until("it is live", isLive);
    const shown = () => tab.evaluate(`document.querySelector("[data-live=oldest]").innerText`);
    await until("it is shown", async () => (await shown()).includes(hostile[0] ?? ""));
    assert.deepEqual(await tab.evaluate(foreign), []);
    assert.deepEqual([tab.alarms, tab.problems], [[], []]);
  });
});

inBrowser("text that turns the direction of reading turns nothing beside it", async () => {
  await withTab(async (tab) => {
    await tab.goto(`${stack.entitlement.url}/console/dead-letters`);
    const kinds = await tab.evaluate(`[...document.querySelectorAll("main a, main code, main span")]
      .map((element) => getComputedStyle(element).unicodeBidi)`);
    assert.deepEqual([...new Set(kinds)], ["isolate"]);
  });
});

Deno.test("the name that an issuer gives a caller is text, too", async () => {
  await using issuer = await startIssuer();
  const settings = { ...issuer.settings, ENTITLEMENT_DEBUG_ENABLED: "true" };
  await using kenri = await startEntitlement(settings);
  const sub = `<img/src=x/onerror=canary("name")>`;
  const jwt = await issuer.sign({ sub, scope: "debug:read operations:write", inSeconds: 60 });
  const { text } = await call(`${kenri.url}/console/sign-out`, { headers: bearer(jwt) });
  assert.match(text, /&lt;img\/src=x/);
  assert.doesNotMatch(text, /<img/);
});
