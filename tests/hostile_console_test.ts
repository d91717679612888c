// What comes from outside stays text on every page, in a real Chromium, and no other site gets a
// person's browser to do or show anything here. Machines without a Chromium skip this.
import assert from "node:assert/strict";
import { bearer } from "./access.ts";
import { call, grant } from "./api.ts";
import {
  type Browser,
  chromium,
  inBrowser,
  startBrowser,
  type Tab,
  type TabOptions,
} from "./browser.ts";
import { ask, startEntitlement } from "./entitlement.ts";
import { startIssuer } from "./issuer.ts";
import { countsOf } from "./notification.ts";
import { failingSends, operate, type Stack, startStack } from "./stack.ts";
import { until } from "./wait.ts";

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

async function withTab(use: (tab: Tab) => Promise<void>, options: TabOptions = {}): Promise<void> {
  const tab = await browser.open(options);
  try {
    await use(tab);
  } finally {
    await tab.close();
  }
}

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
        if ((await tab.evaluate(foreign)).length > 0) gone.push(text);
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
        if (await tab.evaluate(`document.body.textContent.includes(${JSON.stringify(text)})`)) {
          shown++;
        }
        // Chromium shows JSON in a page of its own making.
        const isJson = await tab.evaluate("document.contentType === 'application/json'");
        if (!isJson) assert.deepEqual(await tab.evaluate(foreign), [], url);
        await tab.evaluate(`dispatchEvent(new PointerEvent("pointermove"))`);
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

interface Site extends AsyncDisposable {
  origin: string; // another port of this machine: another origin, but the same site
  elsewhere: string; // the same by another name: another site
}

function servePages(page: (url: string) => string): Site {
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    ({ url }) => new Response(page(url), { headers: { "Content-Type": "text/html" } }),
  );
  const { port } = server.addr;
  return {
    origin: `http://127.0.0.1:${port}`,
    elsewhere: `http://evil.example:${port}`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

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
       <input name=id value=${hostile.length + 1}><input name=who value=eve>
       <input name=reason value=because>
     </form><script>onclick = () => document.forms[0].submit()</script>`;
    await withTab(async (tab) => {
      const error = `${hostile[0]}\u0001\u001b[2J`;
      await tab.goto(`${url}${confirmPath}?${new URLSearchParams({ layer: "delivery", error })}`);
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
