// The console in a real Chromium: with the keyboard, on a phone, in dark mode, without scripts.
// These tests are skipped if there is no Chromium. KENRI_WRITE_DOCS=true writes the screenshots of
// docs/console.md.
import assert from "node:assert/strict";
import { grant, revoke } from "../support/api.ts";
import { chromium, inBrowser, type Tab, type TabOptions } from "../support/browser.ts";
import { chromiumStack } from "../support/chromium_stack.ts";
import { startConsoles } from "./consoles.ts";
import { lowContrasts } from "../support/contrasts.ts";
import { ask } from "../support/entitlement.ts";
import { until } from "../../tools/servers/wait.ts";
import { root } from "../../tools/root.ts";

if (!chromium) {
  console.log("There is no Chromium on this machine: the tests that need a browser are skipped");
}

let eventId: string;
let pagesOfOrders: string[];
const consoles = chromiumStack(async () => {
  const started = await startConsoles();
  ({ eventId, pagesOfOrders } = started);
  return started.stack;
});

function pages(): string[] {
  const { entitlement, notification } = consoles.stack;
  const dead = `${notification.url}/console/dead-letters`;
  return [
    ...[entitlement.url, notification.url].flatMap((url) => [
      `${url}/console`,
      `${url}/console/timeline?by=event_id&q=${eventId}`,
      `${url}/console/timeline?by=user_id&q=ann`,
      `${url}/console/operations`,
    ]),
    `${entitlement.url}/console/timeline?by=idempotency_key&q=purchase-of-unlucky-bob`,
    `${entitlement.url}/console/points`,
    `${entitlement.url}/console/points?user_id=ann`,
    `${entitlement.url}/console/dead-letters?layer=reservation`,
    `${entitlement.url}/console/reconciliation`,
    `${entitlement.url}/console/dead-letters`,
    `${notification.url}/console/inbox?user_id=ann`,
    ...pagesOfOrders.map((path) => notification.url + path),
    ...[dead, `${dead}/one?layer=delivery&id=1`, `${dead}/send-back?layer=delivery&id=1`],
  ];
}

const withTab = (options: TabOptions, use: (tab: Tab) => Promise<void>) =>
  consoles.withTab(async (tab) => {
    await use(tab);
    assert.deepEqual(tab.problems, []);
  }, options);

const isLive = (tab: Tab) => tab.evaluate("document.body.innerText.includes('Live: ')");
const textOf = (tab: Tab): Promise<string> => tab.evaluate("document.body.innerText");

inBrowser(
  "each page is free of browser errors, has one heading, and a label for every field",
  async () => {
    await withTab({}, async (tab) => {
      for (const url of pages()) {
        await tab.goto(url);
        const found = await tab.evaluate(`({
        headings: document.querySelectorAll("h1").length,
        main: document.querySelectorAll("main#main").length,
        styled: getComputedStyle(document.querySelector(".bar")).display,
        nameless: [...document.querySelectorAll("input:not([type=hidden]), select, button, a")]
          .filter((e) => !(e.labels?.length || e.innerText?.trim())).map((e) => e.outerHTML),
      })`);
        assert.deepEqual(
          found,
          { headings: 1, main: 1, styled: "block", nameless: [] },
          url,
        );
        assert.deepEqual(tab.problems, [], url);
      }
    });
  },
);

inBrowser("on a phone no page scrolls sideways, and tables are cards", async () => {
  for (const width of [320, 390]) {
    await withTab({ width, height: 800 }, async (tab) => {
      for (const url of pages()) {
        await tab.goto(url);
        assert.equal(await tab.evaluate("document.documentElement.scrollWidth"), width, url);
      }
      await tab.goto(`${consoles.stack.notification.url}/console/inbox?user_id=ann`);
      const found = await tab.evaluate(`[
        getComputedStyle(document.querySelector("tbody tr")).display,
        getComputedStyle(document.querySelector("tbody td"), "::before").content,
      ]`);
      assert.deepEqual(found, ["block", '"Received"']);
    });
  }
});

inBrowser("text has enough contrast in light and dark mode", async () => {
  for (const dark of [false, true]) {
    await withTab({ dark }, async (tab) => {
      for (const url of pages()) {
        await tab.goto(url);
        assert.deepEqual(await tab.evaluate(lowContrasts), [], `${url} ${dark ? "dark" : "light"}`);
      }
    });
  }
});

inBrowser("an event can be found with the keyboard alone", async () => {
  await withTab({}, async (tab) => {
    await tab.goto(`${consoles.stack.entitlement.url}/console`);
    await tab.press("Tab");
    assert.equal(
      await tab.evaluate(
        "document.activeElement.getBoundingClientRect().left >= 0 && document.activeElement.innerText",
      ),
      "Skip to the content",
      "it shows when it has the focus",
    );
    await tabTo(tab, "document.activeElement.id === 'q'");
    await tab.type("unlucky-bob");
    await tab.leave(() => tab.press("Enter"));
    assert.match(await textOf(tab), /CHANGED[^]*PUBLISHED/);
    await tabTo(tab, "/^Continue in notification/.test(document.activeElement.innerText)");
    await tab.leave(() => tab.press("Enter"));
    assert.match(await textOf(tab), /RECEIVED[^]*GAVE_UP/);
  });
});

async function tabTo(tab: Tab, condition: string): Promise<void> {
  for (let i = 0; i < 50; i++) {
    if (await tab.evaluate(condition)) {
      const outline = await tab.evaluate("getComputedStyle(document.activeElement).outlineStyle");
      assert.equal(outline, "solid", "it is seen where the focus is");
      return;
    }
    await tab.press("Tab");
  }
  assert.fail(`The keyboard does not reach ${condition}`);
}

inBrowser(
  "figures update by themselves, except while paused or focused",
  async () => {
    await withTab({}, async (tab) => {
      await tab.goto(`${consoles.stack.entitlement.url}/console`);
      await until("it is live", () => isLive(tab));
      await tab.evaluate("document.querySelector('[data-live-pause]').click()");
      const oldest = `document.querySelector("[data-live=oldest]").innerText`;
      await addWaiting("paused");
      await new Promise((over) => setTimeout(over, 1_500));
      assert.doesNotMatch(await tab.evaluate(oldest), /paused:x/);
      await tab.evaluate("document.querySelector('[data-live-pause]').click()");
      await until("it is shown", async () => /paused:x/.test(await tab.evaluate(oldest)));
      await tab.evaluate("document.querySelector('[data-live=oldest] a').focus()");
      await addWaiting("focused");
      await new Promise((over) => setTimeout(over, 1_500));
      assert.doesNotMatch(await tab.evaluate(oldest), /focused:x/);
      await tab.evaluate("document.activeElement.blur()");
      await until("it is shown", async () => /focused:x/.test(await tab.evaluate(oldest)));
    });
    await consoles.stack.entitlement.rows("delete from outbox_events where last_error = 'not yet'");
  },
);

async function addWaiting(user: string): Promise<void> {
  await ask(
    consoles.stack.entitlement.database.ownerUrl,
    `insert into outbox_events
       (event_id, event_type, aggregate_key, payload, next_retry_at, last_error)
     values (gen_random_uuid(), 'EntitlementGranted', $1, '{}', now() + interval '1 h', 'not yet')`,
    [`${user}:x`],
  );
}

// The screenshots of docs/console.md, taken with some traffic.
const pictures: [string, () => string, TabOptions][] = [
  ["pipeline-entitlement", () => `${consoles.stack.entitlement.url}/console`, {}],
  ["pipeline-notification-dark", () => `${consoles.stack.notification.url}/console`, {
    dark: true,
  }],
  [
    "timeline",
    () => `${consoles.stack.notification.url}/console/timeline?by=event_id&q=${eventId}`,
    {},
  ],
  ["points", () => `${consoles.stack.entitlement.url}/console/points?user_id=ann`, {}],
  ["endpoint", () => `${consoles.stack.notification.url}${pagesOfOrders[3]}`, {}],
  ["dead-letters", () => `${consoles.stack.notification.url}/console/dead-letters`, {}],
  [
    "dead-letters-phone",
    () => `${consoles.stack.notification.url}/console/dead-letters`,
    { width: 390, height: 844 },
  ],
];

inBrowser(
  "the screenshots of docs/console.md are small, and their pages still exist",
  async () => {
    const folder = `${root}docs/console/`;
    const write = Deno.env.get("KENRI_WRITE_DOCS") === "true";
    if (write) await someTraffic();
    for (const [name, urlOf, options] of pictures) {
      await withTab(options, async (tab) => {
        await tab.goto(urlOf());
        if (name.startsWith("pipeline")) await until("it is live", () => isLive(tab));
        if (write) await Deno.writeFile(`${folder}${name}.png`, await tab.screenshot());
      });
      const { size } = await Deno.stat(`${folder}${name}.png`);
      assert.ok(size < 150_000, `${name}: ${size} bytes`);
    }
  },
);

async function someTraffic(): Promise<void> {
  for (let i = 0; i < 1_500; i++) {
    const change = Math.floor(i / 100) % 2 ? revoke : grant;
    await change(consoles.stack.entitlement.url, { user_id: `user-${i % 100}` });
    await new Promise((over) => setTimeout(over, 15 + 25 * Math.abs(Math.sin(i / 120))));
  }
}

// This test is the last one, because it changes the data of the others.
inBrowser(
  "without scripts a dead letter can be selected and sent back, and is logged",
  async () => {
    await withTab({ scripts: false }, async (tab) => {
      const { url } = consoles.stack.notification;
      await tab.goto(`${url}/console`);
      assert.match(await textOf(tab), /As of [^]*Reload/);
      await tab.goto(`${url}/console/dead-letters`);
      await tabTo(tab, "document.activeElement.type === 'checkbox'");
      await tab.press("Space");
      await tabTo(tab, "/^Send selected/.test(document.activeElement.innerText)");
      await tab.leave(() => tab.press("Enter"));
      assert.match(await textOf(tab), /1 dead letter of the layer delivery will be sent back/);
      await tabTo(tab, "document.activeElement.id === 'who'");
      await tab.type("kim");
      await tab.press("Tab");
      await tab.type("<b>the channel is back</b>");
      await tab.leave(() => tab.press("Enter"));
      assert.match(await textOf(tab), /1 dead letter sent back\./);
      assert.equal(await tab.evaluate("location.pathname"), "/console/dead-letters");
      await tab.goto(`${url}/console/operations`);
      assert.match(await textOf(tab), /SEND_BACK[^]*kim[^]*<b>the channel is back<\/b>[^]*1 item/);
    });
  },
);
