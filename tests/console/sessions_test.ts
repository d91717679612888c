// What the browser of a signed-in person keeps: never the credential, nothing that another service
// accepts, and nothing that outlives the credential.
import assert from "node:assert/strict";
import { bearer, newClient, tokensOf } from "../support/access.ts";
import { call } from "../support/api.ts";

import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import { startIssuer } from "../access/issuer.ts";
import { type Browser, browserOf, signIn } from "./persons.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { startStack } from "../support/stack.ts";

const kim = newClient("kim", "debug:read", "metrics:read");
const lee = newClient("lee", "debug:read");
const key = {
  ACCESS_SESSION_KEY: "a session key of these tests".replaceAll(" ", "-").padEnd(40, "x"),
};
const debug = { ENTITLEMENT_DEBUG_ENABLED: "true" };

async function signedIn(url: string, credential: string): Promise<Browser> {
  const browser = browserOf(url);
  assert.equal((await signIn(browser, credential)).status, 303);
  return browser;
}

// The same browser at another replica or service.
async function statusAt(url: string, { cookies }: Browser): Promise<number> {
  const other = browserOf(url);
  for (const [name, value] of cookies) other.cookies.set(name, value);
  return (await other.visit("/console")).status;
}

const replicaOf = ({ settings }: Entitlement, more: Record<string, string>) =>
  startService("entitlement", { ...settings, ...more });

Deno.test("the cookie is not the credential and is useless to any other service", async () => {
  const settings = { ...tokensOf(kim), ...key };
  await using stack = await startStack({ entitlement: settings, notification: settings });
  const { entitlement, notification } = stack;
  const browser = await signedIn(entitlement.url, kim.token);
  const sessions = [...browser.cookies].filter(([name]) => name !== "kenri_form");
  assert.deepEqual(sessions.map(([name]) => name), ["kenri-entitlement"]);
  for (const [, value] of sessions) {
    assert.ok(!value.includes(kim.token) && !kim.token.includes(value));
    for (const { url } of [entitlement, notification]) {
      assert.equal((await call(`${url}/metrics`, { headers: bearer(value) })).status, 401);
      const headers = { Cookie: `kenri-notification=${value}; __Host-kenri-entitlement=${value}` };
      const answer = await call(`${url}/console`, { headers });
      assert.equal(answer.status, 401, url);
    }
  }
  assert.equal(await statusAt(entitlement.url, browser), 200);
  assert.equal(await statusAt(notification.url, browser), 303);
  // Both consoles are on one host: signing in to the second ends no session of the first.
  const second = await signedIn(notification.url, kim.token);
  for (const [name, value] of second.cookies) browser.cookies.set(name, value);
  assert.equal(await statusAt(entitlement.url, browser), 200);
  assert.equal(await statusAt(notification.url, browser), 200);
});

Deno.test("replicas accept each other's sessions only if they have the same key", async () => {
  await using one = await startEntitlement({ ...tokensOf(kim), ...key, ...debug });
  await using same = await replicaOf(one, {});
  await using other = await replicaOf(one, { ACCESS_SESSION_KEY: "another".repeat(9) });
  const browser = await signedIn(one.url, kim.token);
  assert.equal(await statusAt(same.url, browser), 200);
  assert.equal(await statusAt(other.url, browser), 303);
  const { ACCESS_SESSION_KEY: _, ...keyless } = one.settings;
  await using first = await startService("entitlement", keyless);
  await using next = await startService("entitlement", keyless);
  const own = await signedIn(first.url, kim.token);
  assert.deepEqual([await statusAt(first.url, own), await statusAt(next.url, own)], [200, 303]);
});

Deno.test("a session ends when its token is removed from the settings, and not before", async () => {
  await using before = await startEntitlement({ ...tokensOf(kim, lee), ...key, ...debug });
  await using after = await replicaOf(before, tokensOf(lee));
  const [ofKim, ofLee] = [
    await signedIn(before.url, kim.token),
    await signedIn(before.url, lee.token),
  ];
  assert.deepEqual([await statusAt(after.url, ofKim), await statusAt(after.url, ofLee)], [
    303,
    200,
  ]);
});

Deno.test("a session from a JWT ends where its issuer is no longer trusted", async () => {
  await using issuer = await startIssuer();
  await using other = await startIssuer();
  await using here = await startEntitlement({
    ...issuer.settings,
    ...tokensOf(lee),
    ...key,
    ...debug,
  });
  await using there = await replicaOf(here, other.settings);
  const token = await issuer.sign({ sub: "kim", scope: "debug:read", inSeconds: 600 });
  const browser = await signedIn(here.url, token);
  assert.ok(![...browser.cookies.values()].some((value) => value.includes(token)));
  assert.deepEqual([await statusAt(here.url, browser), await statusAt(there.url, browser)], [
    200,
    303,
  ]);
});
