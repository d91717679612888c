// G-101 and G-102 as a person meets them: in a real Chromium, at a real issuer, with two replicas. Skipped
// if there is no Chromium.
import assert from "node:assert/strict";
import type { Faults } from "../../tools/issuer/faults.ts";
import { until } from "../../tools/servers/wait.ts";
import { call } from "../support/api.ts";
import { inBrowser, type Tab } from "../support/browser.ts";
import { chromiumStack } from "../support/chromium_stack.ts";
import {
  chooseUser,
  logInAs,
  pagesOf,
  startPeople,
  textOf,
  toIssuer,
  untilSays,
  untilShown,
} from "../support/people.ts";
import { post } from "../support/account.ts";

const people = chromiumStack(startPeople);
const withTab = pagesOf(people);

const sessionOf = async (tab: Tab) => (await tab.cookies()).find(({ name }) => name === "kenri");

inBrowser(
  "G-101: a login has PKCE, state and nonce, and leaves nothing of it in the browser",
  async () => {
    const { url, issuer } = people.stack;
    await withTab(async (tab) => {
      await logInAs(tab, people.stack, "ann");
      const asked = tab.visited.map((address) => new URL(address))
        .find(({ origin, pathname }) => origin === issuer.url && pathname === "/auth");
      const parameters = Object.fromEntries(asked?.searchParams ?? []);
      const { state = "", nonce = "", code_challenge = "", ...others } = parameters;
      assert.deepEqual(others, {
        client_id: issuer.clientId,
        code_challenge_method: "S256",
        redirect_uri: `${url}/login/callback`,
        response_type: "code",
        scope: "openid email profile",
      });
      assert.match(code_challenge, /^[\w-]{43}$/);
      assert.match(nonce, /^[\w-]{22,}$/);
      assert.ok(!state.includes(nonce), "the state does not show what it seals");

      assert.equal(await tab.evaluate("location.href"), `${url}/`);
      assert.equal(await tab.evaluate("document.cookie"), "", "no script can read the session");
      const { httpOnly, secure, sameSite, path } = await sessionOf(tab) ?? {};
      const wanted = { httpOnly: true, secure: false, sameSite: "Lax", path: "/" };
      assert.deepEqual(
        { httpOnly, secure, sameSite, path },
        wanted,
        "without TLS, on the loopback",
      );
      const kept: string = await tab.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}])",
      );
      assert.equal(kept, "[{},{}]");
    });
  },
);

inBrowser(
  "G-101: a callback counts once, and only in the browser whose login it ends",
  async () => {
    await withTab(async (tab) => {
      await logInAs(tab, people.stack, "ann");
      const callback = tab.visited.find((address) => address.includes("/login/callback?")) ?? "";
      const before = await sessionOf(tab);
      await tab.goto(callback);
      assert.match(await textOf(tab), /You are not logged in/, "the code was used before");
      assert.deepEqual(await sessionOf(tab), before, "the session from before stays");
      await withTab(async (other) => {
        await other.goto(callback);
        assert.match(await textOf(other), /You are not logged in/);
        assert.equal(await sessionOf(other), undefined);
        assert.equal(await other.evaluate("location.search"), "?error");
      });
    });
  },
);

const wrong: Record<string, Faults> = {
  "another nonce": { idToken: { claims: { nonce: "another" } } },
  "another issuer": { idToken: { claims: { iss: "https://issuer.example" } } },
  "another audience": { idToken: { claims: { aud: "another" } } },
  "an expired token": { idToken: { claims: { exp: 1_000_000_000 } } },
  "a key that is not published": { idToken: { by: "unpublished key" } },
  "no signature": { idToken: { by: "nobody" } },
};

inBrowser(
  "G-101: a token with a wrong nonce, issuer, audience, time or signature begins no session",
  async () => {
    const { issuer } = people.stack;
    try {
      for (const [name, faults] of Object.entries(wrong)) {
        await withTab(async (tab) => {
          await toIssuer(tab, people.stack.url);
          await issuer.faults(faults);
          await chooseUser(tab, "ann");
          assert.match(await textOf(tab), /You are not logged in/, name);
          assert.equal(await sessionOf(tab), undefined, name);
        });
      }
    } finally {
      await issuer.faults();
    }
  },
);

inBrowser("G-101: several tabs can log in at the same time, and each comes back", async () => {
  await withTab(async (tab) => {
    await toIssuer(tab, people.stack.url);
    const beside = await tab.openBeside();
    await toIssuer(beside, people.stack.url);
    await chooseUser(tab, "ann");
    await untilShown(tab, "in");
    await chooseUser(beside, "ann");
    await untilShown(beside, "in");
  });
});

inBrowser("while the issuer is away, a page says so, and a later login works", async () => {
  const { issuer, url } = people.stack;
  await withTab(async (tab) => {
    await toIssuer(tab, url);
    await issuer.faults({ at: { token: { status: 503 } } });
    await chooseUser(tab, "ann");
    assert.match(await textOf(tab), /Logging in does not work right now/);
    assert.equal(await sessionOf(tab), undefined);
    await issuer.faults();
    await tab.leave(() => tab.evaluate(`document.querySelector("a.button").click()`));
    await untilShown(tab, "in"); // the issuer still knows who it is
  });
});

const ask = (tab: Tab, method: string, path: string, headers = {}): Promise<[number, string]> =>
  tab.evaluate(`(async () => {
    const options = { method: "${method}", headers: ${JSON.stringify(headers)} };
    const answer = await fetch("${path}", options);
    return [answer.status, (await answer.text()).match(/"code":"(\\w+)"/)?.[1] ?? ""];
  })()`);

inBrowser("G-102: /v1/me is 401, 200, and 403 while the account is suspended", async () => {
  const { account, other } = people.stack;
  await withTab(async (tab) => {
    await tab.goto(people.stack.url);
    assert.deepEqual(await ask(tab, "GET", "/v1/me"), [401, "UNAUTHORIZED"]);
    const userId = await logInAs(tab, people.stack, "suspended.one");
    assert.deepEqual(await ask(tab, "GET", "/v1/me"), [200, ""]);
    const user = `${account.url}/v1/users/${userId}`;
    assert.equal((await post(`${user}:suspend`, { reason: "spam" })).status, 204);
    await untilShown(tab, "suspended");
    assert.deepEqual(await ask(tab, "GET", "/v1/me"), [403, "ACCOUNT_INACTIVE"]);
    const cookie = `kenri=${(await sessionOf(tab))?.value}`;
    await until(
      "the other replica refuses it, too",
      async () => (await call(`${other.url}/v1/me`, { headers: { cookie } })).status === 403,
    );
    assert.equal((await post(`${user}:resume`, { reason: "a mistake" })).status, 204);
    await untilShown(tab, "in");
    assert.deepEqual(await ask(tab, "GET", "/v1/me"), [200, ""]);
  });
});

inBrowser(
  "G-102: a logout needs the token of the session, and ends it on every replica",
  async () => {
    const { url, other } = people.stack;
    await withTab(async (tab) => {
      await logInAs(tab, people.stack, "leaving");
      const cookie = `kenri=${(await sessionOf(tab))?.value}`;
      const standing = async () =>
        (await call(`${other.url}/v1/me`, { headers: { cookie } })).status;
      assert.deepEqual(await ask(tab, "POST", "/logout"), [403, "CSRF_REJECTED"]);
      const forged = { "X-CSRF-Token": "forged" };
      assert.deepEqual(await ask(tab, "POST", "/logout", forged), [403, "CSRF_REJECTED"]);
      assert.equal(await standing(), 200);
      await tab.evaluate(`document.getElementById("log-out").click()`);
      await untilSays(tab, /You are logged out here/);
      assert.equal(await sessionOf(tab), undefined);
      await until("it has ended on the other replica", async () => await standing() === 401);
      assert.equal((await call(`${url}/v1/me`, { headers: { cookie } })).status, 401);
    });
  },
);

inBrowser(
  "G-102: a logout everywhere ends the sessions in other browsers, whose pages are emptied",
  async () => {
    await withTab(async (tab) => {
      const userId = await logInAs(tab, people.stack, "everywhere");
      await withTab(async (elsewhere) => {
        assert.equal(await logInAs(elsewhere, people.stack, "everywhere"), userId);
        await tab.evaluate(`document.getElementById("log-out-everywhere").click()`);
        await untilSays(tab, /You are logged out here/);
        await untilSays(elsewhere, /Your session has ended/);
        assert.ok(
          !(await elsewhere.evaluate("document.documentElement.outerHTML")).includes(userId),
        );
      });
    });
  },
);

inBrowser("a logout at the issuer ends the session here", async () => {
  const { issuer, url } = people.stack;
  await issuer.announceTo(`${url}/logout/backchannel`);
  await withTab(async (tab) => {
    await logInAs(tab, people.stack, "leaves.the.issuer");
    const beside = await tab.openBeside();
    await beside.goto(`${issuer.url}/session/end`);
    await beside.leave(() =>
      beside.evaluate(`document.querySelector("button[value=yes]").click()`)
    );
    await untilSays(tab, /Your session has ended/);
  });
});
