// The card "Match" of a user's page in a real Chromium. Skipped if there is no Chromium.
// KENRI_WRITE_DOCS=true writes the screenshots of docs/accounts.md.
import assert from "node:assert/strict";
import { until } from "../../tools/servers/wait.ts";
import { inBrowser, type Tab } from "../support/browser.ts";
import { chromiumStack } from "../support/chromium_stack.ts";
import { lowContrasts } from "../support/contrasts.ts";
import { age, untilReady } from "../support/matchmaking.ts";
import { scrapeOf, valueOf } from "../support/metrics.ts";
import { shoot } from "../support/screenshots.ts";
import { logInAs, pagesOf, textById, textOf, untilSays, untilShown } from "../support/people.ts";
import { cancel, find, looking, startPlayers, ticketsOf, waitingTicketOf } from "./players.ts";

const people = chromiumStack(startPlayers);
const withTab = pagesOf(people);
const ticketCount = async (userId: string) => (await ticketsOf(people.stack, userId)).length;

inBrowser("two people who look for a match on two pages find each other", async () => {
  await withTab(async (one) => {
    await withTab(async (other) => {
      const [ann, bob] = [
        await logInAs(one, people.stack, "ann"),
        await logInAs(other, people.stack, "bob"),
      ];
      await find(one);
      await untilSays(one, looking());
      assert.equal(await textById(one, "match-state"), "Looking for a match: casual");
      await find(other);
      for (const [tab, peer] of [[one, bob], [other, ann]] as const) {
        await untilSays(tab, /Match found: casual/);
        assert.equal(await textById(tab, "matched-with"), peer);
        await untilSays(tab, /Notifications\s+(New )?You were matched to play casual/);
      }
      for (const user of [ann, bob]) assert.equal(await ticketCount(user), 1);
      assert.match(await textOf(one), /Find a match/, "and can go on");
    });
  });
});

inBrowser(
  "a search goes on after a reload, and a page that is left waits no more",
  async () => {
    const { url, before, matchmaking } = people.stack;
    await withTab(async (tab) => {
      const user = await logInAs(tab, people.stack, "reloader");
      await find(tab, "rank");
      await untilSays(tab, looking("rank"));
      const { id } = await waitingTicketOf(people.stack, user);
      const waits = () => before.arrived(`/v1/matchmaking/tickets/${id}?wait=25s`).length;
      const left = async () =>
        valueOf(await scrapeOf({ url }), "kenri_ask_duration_seconds_count", {
          ...{ service: "matchmaking", outcome: "left" },
        }) ?? 0;
      const leftBefore = await left();
      await until("it waits", () => waits() === 1);
      await tab.goto(url);
      await untilSays(tab, /Looking for a match: rank/);
      await until("it waits again", () => waits() === 2);
      assert.equal(await ticketCount(user), 1);
      await tab.goto("about:blank");
      await until("no wait goes on behind", async () => await left() === leftBefore + 2);
      await age(matchmaking, id, "rank");
      await tab.goto(url);
      await untilSays(tab, /Nobody was found in time\. Please try again\./);
      await untilSays(tab, /Nobody was found in time to play rank/);
    });
  },
);

inBrowser("every end of a search is said, and each click is a search of its own", async () => {
  const { matchmaking } = people.stack;
  await withTab(async (tab) => {
    const user = await logInAs(tab, people.stack, "unlucky.one");
    await find(tab);
    await untilSays(tab, looking());
    await cancel(tab);
    await untilSays(tab, /You stopped looking\./);
    await find(tab);
    await untilSays(tab, looking());
    const broken = await waitingTicketOf(people.stack, user);
    await matchmaking.redis("HDEL", broken.key, "expires_ms");
    await untilSays(tab, /Something went wrong on our side\. Please try again\./);
    await find(tab);
    await untilSays(tab, looking());
    const beside = await tab.openBeside();
    await beside.goto(people.stack.url);
    await untilSays(beside, /Find a match/);
    await find(beside);
    await untilSays(beside, /already looking for this match, in another tab/);
    assert.match(await textOf(beside), /Find a match/);
    await matchmaking.redis("SET", `mm:{rank}:joins:${user}`, "2000", "PX", "60000");
    await find(beside, "rank");
    await untilSays(beside, /You have tried this too often\. Please wait a while\./);
    const tickets = await ticketsOf(people.stack, user);
    assert.equal(new Set(tickets.map(({ idempotencyKey }) => idempotencyKey)).size, 3);
    await cancel(tab);
    await untilSays(tab, /You stopped looking\./);
  });
});

inBrowser(
  "while matchmaking is away the card says so, and each click makes one ticket",
  async () => {
    const { before, matchmaking, redis } = people.stack;
    const away = /Matchmaking is not available at the moment\. Please try again\./;
    await withTab(async (tab) => {
      const user = await logInAs(tab, people.stack, "patient");
      await redis.stop();
      await find(tab);
      await untilSays(tab, away);
      await untilSays(tab, /\nLive\n/);
      await redis.start();
      await untilReady(matchmaking);
      before.losesAnswers = true;
      await find(tab);
      await until("it was joined", async () => await ticketCount(user) === 1);
      await untilSays(tab, away);
      before.losesAnswers = false;
      await find(tab);
      await untilSays(tab, looking());
      assert.equal(await ticketCount(user), 1);
      await cancel(tab);
      await untilSays(tab, /You stopped looking\./);
    });
  },
);

/** The page asks again meanwhile, and then it says only that this failed. */
function untilNotCancelled(tab: Tab, why: RegExp): Promise<void> {
  const said = new RegExp(`Not cancelled${why.source}`);
  return until(`it is not cancelled${why}`, async () => {
    if (said.test(await textOf(tab))) return true;
    await cancel(tab);
    return false;
  });
}

function untilFine(tab: Tab): Promise<void> {
  const problem = `document.querySelector("#match .problem").innerText`;
  return until("the search goes on", async () => await tab.evaluate(problem) === "");
}

inBrowser(
  "a search that is under way survives an outage, and is seen at once after it",
  async () => {
    const { before, redis } = people.stack;
    await withTab(async (tab) => {
      const user = await logInAs(tab, people.stack, "more.patient");
      await find(tab);
      await untilSays(tab, looking());
      // The service and then its Redis: the first cuts the wait.
      for (const server of [before, redis]) {
        await server.stop();
        await untilSays(tab, /Matchmaking does not answer at the moment\. Trying again\./);
        await untilNotCancelled(tab, /: matchmaking is not available at the moment\./);
        await server.start();
        await untilFine(tab);
        assert.match(await textOf(tab), looking());
      }
      assert.equal(await ticketCount(user), 1);
      await tab.setOffline(true);
      await untilNotCancelled(tab, /: there is no connection\./);
      await tab.setOffline(false);
      await cancel(tab);
      await untilSays(tab, /You stopped looking\./);
    });
  },
);

inBrowser("a match is found and cancelled with the keyboard alone", async () => {
  await withTab(async (tab) => {
    await logInAs(tab, people.stack, "kim");
    await tab.evaluate(`document.getElementById("mode").focus()`);
    await tab.press("Tab");
    await tab.press("Enter");
    await untilSays(tab, looking());
    assert.equal(await tab.evaluate("document.activeElement.innerText"), "Match");
    await tab.press("Tab");
    assert.equal(await tab.evaluate("document.activeElement.innerText"), "Cancel");
    await tab.press("Enter");
    await untilSays(tab, /You stopped looking\./);
    assert.equal(await tab.evaluate("document.activeElement.innerText"), "Match");
  });
});

inBrowser("when the session ends, nothing of a search stays in the tab", async () => {
  await withTab(async (tab) => {
    const user = await logInAs(tab, people.stack, "shared.computer");
    await find(tab);
    await untilSays(tab, looking());
    await tab.evaluate(`document.getElementById("log-out").click()`);
    await untilSays(tab, /You are logged out here/);
    assert.equal(await tab.evaluate("sessionStorage.length"), 0);
    assert.deepEqual((await ticketsOf(people.stack, user)).map(({ status }) => status), [
      "CANCELLED",
    ]);
    await tab.leave(() => tab.evaluate(`document.querySelector("a[href^='/login']").click()`));
    await untilShown(tab, "in"); // the issuer remembers the user
    assert.doesNotMatch(await textOf(tab), /Looking for|You stopped looking/);
  });
});

inBrowser("the card fits a phone and both colour schemes, also while it waits", async () => {
  for (const options of [{}, { dark: true }, { width: 320, height: 700 }]) {
    await withTab(async (tab) => {
      await logInAs(tab, people.stack, "reader");
      const assertReadable = async () => {
        const width = await tab.evaluate("document.documentElement.scrollWidth");
        assert.equal(width, options.width ?? 1280);
        assert.deepEqual(await tab.evaluate(lowContrasts), []);
      };
      await assertReadable();
      await find(tab);
      await untilSays(tab, looking());
      await assertReadable();
      await cancel(tab);
      await untilSays(tab, /You stopped looking\./);
    }, options);
  }
});

inBrowser("the screenshot of the card is small, and shows a match", async () => {
  const { issuer } = people.stack;
  await issuer.setUsers({ chie: { name: "Chie Chiba", locale: "en-GB" } });
  await withTab(async (tab) => {
    await withTab(async (other) => {
      await logInAs(tab, people.stack, "chie");
      await find(tab);
      await untilSays(tab, looking());
      await logInAs(other, people.stack, "dan");
      await find(other);
      await untilSays(tab, /Match found: casual/);
      await untilSays(tab, /You were matched/);
    });
    await shoot(tab, "accounts/match");
  }, { width: 1100, height: 620 });
});
