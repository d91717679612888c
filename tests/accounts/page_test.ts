// The page of a user in a real Chromium: what it shows, how it stays up to date, by keyboard, on a phone
// and in dark mode. Skipped if there is no Chromium. KENRI_WRITE_DOCS=true writes the screenshots of
// docs/accounts.md.
import assert from "node:assert/strict";
import { until } from "../../tools/servers/wait.ts";
import { call, grant, revoke } from "../support/api.ts";
import { inBrowser, type Tab, type TabOptions } from "../support/browser.ts";
import { chromiumStack } from "../support/chromium_stack.ts";
import { lowContrasts } from "../support/contrasts.ts";
import {
  logInAs,
  pagesOf,
  startPeople,
  textById,
  textOf,
  toIssuer,
  untilSays,
  untilShown,
} from "../support/people.ts";
import { shoot } from "../support/screenshots.ts";
import { grantPoints, spendPoints } from "../support/points.ts";

const people = chromiumStack(startPeople);

const withTab = pagesOf(people);

inBrowser("the page shows what a user has, and what arrives while it is open", async () => {
  const { url, entitlement } = { ...people.stack, ...people.stack.stack };
  await withTab(async (tab) => {
    const user_id = await logInAs(tab, people.stack, "ann");
    const empty = await textOf(tab);
    assert.match(empty, /Ann Archer/);
    for (const none of [/no points yet/, /own nothing yet/, /Nothing yet/]) {
      assert.match(empty, none);
    }
    assert.doesNotMatch(empty, /Find a match/, "there is no matchmaking here");
    await untilSays(tab, /\nLive\n/);
    await grant(entitlement.url, { user_id, stock_keeping_unit: "book" });
    await untilSays(tab, /Entitlements\s+book\s+ACTIVE/);
    await untilSays(tab, /You got book/);
    assert.equal(await tab.evaluate(`document.querySelector(".fresh").innerText`), "You got book");
    assert.equal(await textById(tab, "news"), "You got book", "it is read aloud");
    const points = { user_id, reason: "purchase", source_id: "s" };
    await grantPoints(entitlement.url, { ...points, point_amount: 1_500 });
    await spendPoints(entitlement.url, { ...points, point_amount: 20 });
    await revoke(entitlement.url, { user_id, stock_keeping_unit: "book" });
    await untilSays(tab, /Points\s+1,480\s+points/);
    await untilSays(tab, /book\s+REVOKED/);
    for (const sentence of ["You got 1500 points, and now have 1500", "You no longer have book"]) {
      await untilSays(tab, new RegExp(sentence));
    }
    await untilSays(tab, /20 points were taken, and you now have 1480/);
    assert.deepEqual([...tab.origins].sort(), [url, people.stack.issuer.url].sort());
  });
});

inBrowser("older notifications are shown on demand, and new ones come before them", async () => {
  const { entitlement } = people.stack.stack;
  await withTab(async (tab) => {
    const user_id = await logInAs(tab, people.stack, "much.news");
    for (let i = 0; i < 25; i++) {
      await grant(entitlement.url, { user_id, stock_keeping_unit: `item-${i}` });
    }
    const rows = () => tab.evaluate(`document.querySelectorAll("#notifications li").length`);
    await until("all have arrived", async () => {
      const { notification } = people.stack.stack;
      const inbox = `${notification.url}/debug/notification/inbox/${user_id}?limit=200`;
      return (await call(inbox)).json.notifications.length === 25;
    });
    await tab.goto(people.stack.url);
    await untilSays(tab, /Show older ones/);
    assert.equal(await rows(), 20);
    await tab.evaluate(`document.getElementById("older").click()`);
    await until("all are shown", async () => await rows() === 25);
    assert.equal(await tab.evaluate(`document.getElementById("older").hidden`), true);
    await grant(entitlement.url, { user_id, stock_keeping_unit: "one-more" });
    await untilSays(tab, /Notifications\s+New You got one-more|Notifications\s+You got one-more/);
    assert.equal(await rows(), 26);
    assert.equal(await tab.evaluate(`document.getElementById("older").hidden`), true);
  });
});

inBrowser("everything can be done with the keyboard alone", async () => {
  await withTab(async (tab) => {
    await tab.goto(people.stack.url);
    await untilShown(tab, "out");
    await tab.press("Tab");
    assert.equal(await focused(tab), "Skip to the content");
    await tabTo(tab, "Log in");
    await tab.leave(() => tab.press("Enter"));
    await tabTo(tab, "kim");
    await tab.leave(() => tab.press("Enter"));
    await untilShown(tab, "in");
    await tabTo(tab, "display-name");
    await tab.evaluate("document.activeElement.select()");
    await tab.type("Kim the Second");
    await tab.press("Enter");
    await untilSays(tab, /Saved\./);
    assert.match(await textOf(tab), /^Kim the Second$/m);
    await tabTo(tab, "Log out");
    await tab.press("Enter");
    await untilSays(tab, /You are logged out here/);
    assert.equal(await tab.evaluate("document.activeElement.innerText"), "See what is yours");
  });
});

const focused = (tab: Tab): Promise<string> =>
  tab.evaluate("document.activeElement.innerText || document.activeElement.id");

async function tabTo(tab: Tab, wanted: string): Promise<void> {
  for (let presses = 0; presses < 40; presses++) {
    if (await focused(tab) === wanted) {
      const [width, style] = await tab.evaluate(`(() => {
        const { outlineWidth, outlineStyle } = getComputedStyle(document.activeElement);
        return [outlineWidth, outlineStyle];
      })()`);
      assert.ok(width !== "0px" && style !== "none", `${wanted} shows that it has the focus`);
      return;
    }
    await tab.press("Tab");
  }
  assert.fail(`No way leads to "${wanted}" by the keyboard`);
}

inBrowser(
  "on a phone and in dark mode the page fits, can be read, and names its parts",
  async () => {
    const { entitlement } = people.stack.stack;
    for (
      const options of [{}, { dark: true }, { width: 320, height: 700 }, { width: 390, dark: true }]
    ) {
      await withTab(async (tab) => {
        await toIssuer(tab, people.stack.url);
        await tab.goto(people.stack.url);
        await untilShown(tab, "out");
        await assertUsable(tab, options);
        await tab.goto(`${people.stack.url}/login?error`);
        await assertUsable(tab, options);
        const user_id = await logInAs(tab, people.stack, "bob");
        const stock_keeping_unit = "x".repeat(120);
        await grant(entitlement.url, { user_id, stock_keeping_unit });
        await untilSays(tab, /You got x{120}/);
        await assertUsable(tab, options);
      }, options);
    }
  },
);

async function assertUsable(tab: Tab, { width = 1280 }: TabOptions): Promise<void> {
  const found = await tab.evaluate(`({
    width: document.documentElement.scrollWidth,
    headings: [...document.querySelectorAll("h1")].filter((e) => e.checkVisibility()).length,
    main: document.querySelectorAll("main#main").length,
    language: document.documentElement.lang,
    nameless: [...document.querySelectorAll("input, button, a")]
      .filter((e) => !(e.labels?.length || e.textContent.trim())).map((e) => e.outerHTML),
    small: [...document.querySelectorAll("main a.button, main button, main input")]
      .filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 44)
      .map((e) => e.outerHTML),
  })`);
  const wanted = { width, headings: 1, main: 1, language: "en", nameless: [], small: [] };
  assert.deepEqual(found, wanted);
  assert.deepEqual(await tab.evaluate(lowContrasts), []);
}

inBrowser("texts from outside stay texts", async () => {
  const { entitlement } = people.stack.stack;
  const hostile = `"><img src=x onerror="canary('x')"><script>canary('y')</script>`;
  await withTab(async (tab) => {
    const { issuer } = people.stack;
    await issuer.setUsers({ mallory: { name: hostile } });
    const user_id = await logInAs(tab, people.stack, "mallory");
    await grant(entitlement.url, { user_id, stock_keeping_unit: hostile });
    await untilSays(tab, /You got "><img/);
    await untilSays(tab, /^"><img src=x.*script>$/m);
    assert.equal(await tab.evaluate(`document.querySelectorAll("img").length`), 0);
  });
});

inBrowser("the page has a strict policy, and works only with scripts of its own", async () => {
  const { headers } = await call(people.stack.url);
  assert.equal(
    headers.get("Content-Security-Policy"),
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
      "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  );
  await people.withTab(async (tab) => {
    await tab.goto(people.stack.url);
    await untilShown(tab, "out");
    await tab.evaluate(`document.body.insertAdjacentHTML("beforeend",
      "<img src='https://example.com/x.png' onerror='canary(1)'><p style='color: red'>x</p>")`);
    await until(
      "the policy refuses it",
      () =>
        Promise.resolve(
          tab.problems.filter((text) => /Content Security Policy/.test(text)).length >= 3,
        ),
    );
    assert.deepEqual(tab.alarms, []);
  });
  await people.withTab(async (tab) => {
    await tab.goto(people.stack.url);
    assert.match(await textOf(tab), /needs JavaScript to show what is yours\.$/);
  }, { scripts: false });
});

inBrowser(
  "the screenshots of docs/accounts.md are small, and their pages still exist",
  async () => {
    const { entitlement } = people.stack.stack;
    await people.stack.issuer.setUsers({ chie: { name: "Chie Chiba", locale: "en-GB" } });
    await withTab(async (tab) => {
      const user_id = await logInAs(tab, people.stack, "chie");
      const points = { user_id, reason: "purchase", source_id: crypto.randomUUID() };
      for (const stock_keeping_unit of ["film-pass", "concert-ticket", "book"]) {
        await grant(entitlement.url, { user_id, stock_keeping_unit });
      }
      await grantPoints(entitlement.url, { ...points, point_amount: 120 });
      await untilSays(tab, /You got book/);
      await tab.goto(people.stack.url);
      await untilSays(tab, /You got book/);
      await revoke(entitlement.url, { user_id, stock_keeping_unit: "film-pass" });
      await untilSays(tab, /You no longer have film-pass/);
      await untilSays(tab, /film-pass\s+REVOKED/);
      await shoot(tab, "accounts/page");
    }, { width: 1100, height: 820 });
    await withTab(async (tab) => {
      await logInAs(tab, people.stack, "chie");
      await untilSays(tab, /film-pass/);
      await shoot(tab, "accounts/page-phone-dark");
    }, { width: 390, height: 844, dark: true });
    await withTab(async (tab) => {
      await tab.goto(`${people.stack.url}/login?error`);
      assert.match(await textOf(tab), /You are not logged in/);
      await shoot(tab, "accounts/login-failed");
    }, { width: 960, height: 480 });
  },
);
