// Text from outside stays text on every page. These tests use a real Chromium and are skipped
// without one.
import assert from "node:assert/strict";
import { bearer } from "../support/access.ts";
import { call, grant } from "../support/api.ts";
import { inBrowser } from "../support/browser.ts";
import { chromiumStack } from "../support/chromium_stack.ts";
import { startEntitlement } from "../support/entitlement.ts";
import { pagesOfOrders, pagesOfPoints, spoilTables } from "./hostile_rows.ts";
import { startIssuer } from "../access/issuer.ts";
import { countsOf } from "../support/notification.ts";
import { servePages } from "./sites.ts";
import { failingSends, operate, type Stack, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

// Each calls the canary if it becomes more than text: in an element, an attribute, a script, a
// style, a url, a template, after being decoded twice, or behind direction controls.
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

const worker = `<img src=x onerror=canary("worker")>`;

const consoles = chromiumStack(startHostile, ["evil.example"]);
const { withTab } = consoles;

async function startHostile(): Promise<Stack> {
  const stack = await startStack({
    entitlement: { HOSTNAME: worker },
    notification: { ...failingSends, HOSTNAME: worker },
  });
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
  await until("all are dead letters", dead);
  for (const [i, text] of hostile.entries()) {
    await operate(notification.url, "/operations/notification/dead-letters/send-back", {
      layer: "delivery",
      ids: [`${i + 1}`],
      who: text,
      reason: text,
    });
  }
  await until("all are dead letters again", dead);
  await spoilTables(stack, hostile);
  return stack;
}

/** An idempotency key of visible ASCII characters. */
function keyOf(i: number, text: string): string {
  return `${i}${text.replaceAll(/[^\x21-\x7e]/g, "")}`;
}

/** Every url that a browser can be led to, with the text in each place. */
function pagesWith(text: string, i: number): string[] {
  const { entitlement, notification } = consoles.stack;
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
  // Pages without a query show all hostile texts together.
  const together = i === 0 ? ["/console", "/console/dead-letters", "/console/operations"] : [];
  const ofEntitlement = [
    ...together,
    ...(i === 0 ? ["/console/reconciliation"] : []),
    `/console/timeline${query({ by: "idempotency_key", q: keyOf(i, text) })}`,
    ...pagesOfPoints(query, text),
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
    ...pagesOfOrders(query, text, i),
    `/debug/notification/inbox/${encodeURIComponent(`unlucky${text}`)}`,
  ];
  return [
    ...[...ofBoth, ...ofEntitlement].map((path) => entitlement.url + path),
    ...[...ofBoth, ...ofNotification].map((path) => notification.url + path),
  ];
}

// Finds elements that none of our pages has, so that only text from outside could have made them.
const foreign = `[...document.querySelectorAll(
  "script:not([src='/console/live.js']), img, iframe, object, embed, base, meta[http-equiv], " +
  "svg:not(.spark), link:not([href^='/console/']), [style], [autofocus], b > b, textarea"
), ...[...document.querySelectorAll("*")].filter((element) =>
  [...element.attributes].some(({ name, value }) =>
    /^on/.test(name) || (/^(href|src|action|formaction)$/.test(name) && !/^(\\/|#|\\?|$)/.test(value)))
)].map((element) => element.outerHTML)`;

inBrowser(
  "an unprotected page triggers the canary, so the tests below can fail",
  async () => {
    await using attacker = servePages((url) =>
      `<title>x</title><p>${new URL(url).searchParams.get("text")}</p>`
    );
    await withTab(async (tab) => {
      const gone: string[] = [];
      for (const text of hostile) {
        await tab.goto(`${attacker.origin}/?${new URLSearchParams({ text })}`);
        // A page that has been redirected can't be evaluated.
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

inBrowser("text from outside stays text on every page", async () => {
  for (const [i, text] of hostile.entries()) {
    await withTab(async (tab) => {
      let shown = 0;
      for (const url of pagesWith(text, i)) {
        await tab.goto(url);
        // Chromium displays JSON in a page of its own.
        const page = await tab.evaluate(`dispatchEvent(new PointerEvent("pointermove")) && ({
          shown: document.body.textContent.includes(${JSON.stringify(text)}),
          foreign: document.contentType === "application/json" ? [] : ${foreign},
        })`);
        if (page.shown) shown++;
        assert.deepEqual(page.foreign, [], url);
      }
      assert.ok(shown >= 8, `${text} is shown on ${shown} pages`);
      const own = new Set([consoles.stack.entitlement.url, consoles.stack.notification.url]);
      assert.deepEqual([...tab.origins].filter((origin) => !own.has(origin)), []);
      assert.deepEqual(tab.alarms, []);
      // Pages that are not found are expected. A refusal by the Content-Security-Policy is not.
      const others = tab.problems.filter((problem) =>
        !/Failed to load resource: the server responded with a status of (400|404|414)/.test(
          problem,
        )
      );
      assert.deepEqual(others, []);
    });
  }
});

inBrowser("text in live figures stays text, too", async () => {
  await withTab(async (tab) => {
    await tab.goto(`${consoles.stack.entitlement.url}/console`);
    const isLive = () => tab.evaluate("document.body.innerText.includes('Live: ')");
    await until("it is live", isLive);
    const shown = () => tab.evaluate(`document.querySelector("[data-live=oldest]").innerText`);
    await until("it is shown", async () => (await shown()).includes(hostile[0] ?? ""));
    assert.deepEqual(await tab.evaluate(foreign), []);
    assert.deepEqual([tab.alarms, tab.problems], [[], []]);
  });
});

inBrowser("text with direction controls does not affect text beside it", async () => {
  await withTab(async (tab) => {
    await tab.goto(`${consoles.stack.entitlement.url}/console/dead-letters`);
    const kinds = await tab.evaluate(`[...document.querySelectorAll("main a, main code, main span")]
      .map((element) => getComputedStyle(element).unicodeBidi)`);
    assert.deepEqual([...new Set(kinds)], ["isolate"]);
  });
});

Deno.test("a caller's name from an issuer stays text, too", async () => {
  await using issuer = await startIssuer();
  const settings = { ...issuer.settings, ENTITLEMENT_DEBUG_ENABLED: "true" };
  await using kenri = await startEntitlement(settings);
  const sub = `<img/src=x/onerror=canary("name")>`;
  const jwt = await issuer.sign({ sub, scope: "debug:read operations:write", inSeconds: 60 });
  const { text } = await call(`${kenri.url}/console/sign-out`, { headers: bearer(jwt) });
  assert.match(text, /&lt;img\/src=x/);
  assert.doesNotMatch(text, /<img/);
});
