// G-108: how often a user may send requests, and an address may log in.
import assert from "node:assert/strict";
import { startAccount } from "../support/account.ts";
import { type Answer, assertError, call } from "../support/api.ts";
import { serve } from "../support/fake_service.ts";
import { csrf, logIn, logOut, me, startGateway } from "../support/gateway.ts";

const times = <Value>(count: number, one: (i: number) => Value) =>
  Array.from({ length: count }, (_, i) => one(i));

function admitted(answers: Answer[]): number {
  const refused = answers.filter(({ status }) => status === 429);
  for (const answer of refused) {
    assertError(answer, 429, "TOO_MANY_REQUESTS");
    assert.match(answer.headers.get("Retry-After") ?? "", /^[1-9]\d*$/);
  }
  return answers.length - refused.length;
}

Deno.test("G-108: a user may send a burst of requests, with all sessions together, and others are not affected", async () => {
  await using account = await startAccount();
  await using gateway = await startGateway(account, {
    GATEWAY_RATE_USER: "1",
    GATEWAY_RATE_USER_BURST: "20",
  });
  const subject = crypto.randomUUID();
  const devices = [await logIn(account, { subject }), await logIn(account, { subject })] as const;
  const answers = await Promise.all(times(60, (i) => me(gateway, devices[i % 2 ? 0 : 1])));
  const count = admitted(answers);
  assert.ok(count >= 20 && count <= 22, `${count} were admitted`);
  assert.equal((await me(gateway, await logIn(account))).status, 200);
  await new Promise((over) => setTimeout(over, 1_100));
  assert.equal((await me(gateway, devices[0])).status, 200);
});

Deno.test("G-108: requests without a session take nothing from anybody, and refused ones count as well", async () => {
  await using account = await startAccount();
  await using gateway = await startGateway(account, {
    GATEWAY_RATE_USER: "1",
    GATEWAY_RATE_USER_BURST: "3",
  });
  const ann = await logIn(account);
  const forged = `${ann.cookie.slice(0, -4)}AAAA`;
  const answers = await Promise.all(times(30, () => me(gateway, { cookie: forged })));
  for (const answer of answers) assertError(answer, 401, "UNAUTHORIZED");
  const token = await csrf(gateway, ann);
  for (let i = 0; i < 2; i++) assertError(await logOut(gateway, ann, {}), 403, "CSRF_REJECTED");
  assertError(await logOut(gateway, ann, token), 429, "TOO_MANY_REQUESTS");
});

Deno.test("G-108: the requests of a user are counted before the account service is asked about them", async () => {
  await using account = await startAccount();
  await using slow = serve(() => new Response("", { status: 500 }));
  await using gateway = await startGateway({ ...account, url: slow.url }, {
    GATEWAY_RATE_USER: "1",
    GATEWAY_RATE_USER_BURST: "3",
  });
  const ann = await logIn(account);
  const count = admitted(await Promise.all(times(30, () => me(gateway, ann))));
  assert.ok(count >= 3 && count <= 5, `${count} were admitted`);
});

Deno.test("G-108: an address may begin ten logins a minute, and X-Forwarded-For makes no new one", async () => {
  await using account = await startAccount();
  await using gateway = await startGateway(account);
  const count = admitted(
    await Promise.all(times(30, (i) => logInFrom(gateway, `10.0.0.${i}`))),
  );
  assert.equal(count, 10);
  const ann = await logIn(account);
  assert.equal((await me(gateway, ann)).status, 200, "who is logged in is not affected");
});

Deno.test("G-108: behind a proxy each of its clients may log in, and no client can pretend to be another", async () => {
  await using account = await startAccount();
  await using gateway = await startGateway(account, { GATEWAY_TRUSTED_PROXIES: "1" });
  const from = (entries: string[]) =>
    Promise.all(entries.map((entry) => logInFrom(gateway, entry)));
  assert.equal(admitted(await from(times(30, () => "192.0.2.1"))), 10);
  assert.equal(admitted(await from(times(30, (i) => `10.0.0.${i}, 192.0.2.2`))), 10);
  assert.equal(admitted(await from(times(30, (i) => `2001:db8:1:2::${i + 1}`))), 10);
  assert.equal(admitted(await from(["192.0.2.3", "2001:db8:1:3::1"])), 2);
});

function logInFrom({ url }: { url: string }, forwardedFor: string): Promise<Answer> {
  const headers = { "X-Forwarded-For": forwardedFor };
  return call(`${url}/login`, { headers, redirect: "manual" });
}
