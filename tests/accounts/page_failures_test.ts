// What the page of a user shows when a service is away, a change is refused, or its session is another
// one. Skipped if there is no Chromium.
import assert from "node:assert/strict";
import { until } from "../../tools/servers/wait.ts";
import { call, grant } from "../support/api.ts";
import { inBrowser } from "../support/browser.ts";
import { chromiumStack } from "../support/chromium_stack.ts";
import {
  chooseUser,
  logInAs,
  pagesOf,
  startPeople,
  textById,
  textOf,
  untilSays,
  untilShown,
} from "../support/people.ts";

const people = chromiumStack(startPeople);
const withTab = pagesOf(people);

inBrowser("a card says so when its service is away, and the others stay live", async () => {
  await withTab(async (tab) => {
    const { notification, entitlement } = people.stack.stack;
    const user_id = await logInAs(tab, people.stack, "patient");
    await untilSays(tab, /\nLive\n/);
    notification.signal("SIGSTOP");
    try {
      await untilSays(tab, /Notifications\s+Not up to date at the moment/);
      await grant(entitlement.url, { user_id, stock_keeping_unit: "film-pass" });
      await untilSays(tab, /film-pass\s+ACTIVE/);
      await untilSays(tab, /Not all of this is up to date\. Trying again\./);
    } finally {
      notification.signal("SIGCONT");
    }
    // The gateway leaves a service that did not answer alone for 30 seconds.
    await untilSays(tab, /You got film-pass/, 60_000);
    await untilSays(tab, /\nLive\n/);
    await tab.setOffline(true);
    await untilSays(tab, /Not all of this is up to date/);
    assert.match(await textOf(tab), /film-pass\s+ACTIVE/, "it keeps what it knows");
    await tab.setOffline(false);
    await untilSays(tab, /\nLive\n/);
  });
});

inBrowser("a change of the name is refused with the reason, and a lost update too", async () => {
  await withTab(async (tab) => {
    const user_id = await logInAs(tab, people.stack, "renamed");
    const save = (name: string) =>
      tab.evaluate(`(() => {
        document.getElementById("display-name").value = ${JSON.stringify(name)};
        document.querySelector("#profile button").click();
      })()`);
    await save("\u0000".repeat(3));
    await untilSays(tab, /Not saved: display_name/);
    await tab.evaluate(`document.getElementById("display-name").focus()`);
    await save("Mine");
    await untilSays(tab, /^Mine$/m);
    const elsewhere = await call(`${people.stack.account.url}/v1/users/${user_id}`, {
      method: "PATCH",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ display_name: "Theirs", locale: "de-DE" }),
    });
    assert.equal(elsewhere.status, 200);
    await tab.evaluate(`document.getElementById("display-name").value = "Half-typed"`);
    await untilSays(tab, /^Theirs$/m);
    assert.equal(await tab.evaluate(`document.getElementById("display-name").value`), "Half-typed");
    const again = await call(`${people.stack.account.url}/v1/users/${user_id}`, {
      method: "PATCH",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ display_name: "Theirs again" }),
    });
    assert.equal(again.status, 200);
    await save("Mine again"); // before the page has seen the other change
    await untilSays(tab, /Not saved: the account was changed since/);
    await untilSays(tab, /^Theirs again$/m);
    await save("Mine again");
    await untilSays(tab, /^Mine again$/m);
  });
});

inBrowser("when another user logs in, nothing of the first one stays", async () => {
  const { entitlement } = people.stack.stack;
  await withTab(async (tab) => {
    const first = await logInAs(tab, people.stack, "first.one");
    await grant(entitlement.url, { user_id: first, stock_keeping_unit: "secret-book" });
    await untilSays(tab, /secret-book\s+ACTIVE/);
    const beside = await tab.openBeside();
    await beside.goto(people.stack.issuer.url + "/session/end");
    await beside.leave(() =>
      beside.evaluate(`document.querySelector("button[value=yes]").click()`)
    );
    await beside.leave(() => beside.goto(`${people.stack.url}/login?return_to=/`));
    await chooseUser(beside, "second.one");
    await untilShown(beside, "in");
    const second = await textById(beside, "user-id");
    assert.notEqual(second, first);
    await until(
      "the first tab shows the second one",
      async () => await textById(tab, "user-id") === second,
    );
    const html: string = await tab.evaluate("document.documentElement.outerHTML");
    for (const left of [first, "secret-book", "first.one"]) assert.ok(!html.includes(left), left);
  });
});

inBrowser("a login that begins under another name of this machine comes back, too", async () => {
  await withTab(async (tab) => {
    const { url } = people.stack;
    const { port } = new URL(url);
    await tab.goto(`http://localhost:${port}/login?return_to=/?from=localhost`);
    await chooseUser(tab, "ann");
    await untilShown(tab, "in");
    assert.equal(await tab.evaluate("location.href"), `${url}/?from=localhost`);
    await tab.goto(`http://localhost:${port}/`);
    await untilShown(tab, "in");
    assert.equal(await tab.evaluate("location.href"), `${url}/`);
  });
  const { other, url } = people.stack;
  const elsewhere = `http://localhost:${new URL(other.url).port}/login`;
  const { status, headers } = await call(elsewhere, { redirect: "manual" });
  assert.equal(status, 302);
  assert.ok(!headers.get("Location")?.startsWith(url), "another port may be another replica");
});

inBrowser("a page that is left open stops looking until somebody is there again", async () => {
  await withTab(async (tab) => {
    await logInAs(tab, people.stack, "asleep");
    await untilSays(tab, /\nLive\n/);
    await tab.evaluate(`(() => {
      const now = Date.now;
      Date.now = () => now() + 16 * 60 * 1000;
    })()`);
    await untilSays(tab, /Paused, because nobody was here/);
    await tab.press("Tab");
    await untilSays(tab, /\nLive\n/);
  });
});
