// People without a session can't keep those with one from being answered.
import assert from "node:assert/strict";
import { startAccount } from "../support/account.ts";
import { assertError, call } from "../support/api.ts";
import { serve } from "../support/fake_service.ts";
import { logIn, me, startGateway } from "../support/gateway.ts";
import { scrapeOf, valueOf } from "../support/metrics.ts";
import { connectTo, together } from "./raw_http.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("logins that wait for the issuer use up only the slots of strangers", async () => {
  const answers = Promise.withResolvers<Response>();
  await using account = await startAccount();
  await using issuer = serve(() => answers.promise);
  await using gateway = await startGateway(account, {
    GATEWAY_ISSUER: issuer.url,
    HTTP_REQUESTS_AT_ONCE: "100", // two of them for strangers
  });
  const { url } = gateway;
  const ann = await logIn(account);
  const logins = [1, 2].map(() => call(`${url}/login`, { redirect: "manual" }));
  await until("the issuer is asked", () => issuer.asked.length > 0);
  const refused = async () => (await call(`${url}/login`, { redirect: "manual" })).status === 503;
  await until("there is no slot left", refused);
  const answer = await call(`${url}/login`, { redirect: "manual" });
  assertError(answer, 503, "SERVICE_UNAVAILABLE", "too many come without a credential, try again");
  assert.match(answer.headers.get("Retry-After") ?? "", /^\d+$/);
  assert.equal((await me(gateway, ann)).status, 200);
  for (const path of ["/livez", "/readyz"]) assert.equal((await call(url + path)).status, 200);
  answers.resolve(new Response("", { status: 500 }));
  for (const { status } of await Promise.all(logins)) assert.equal(status, 503);
  assert.equal((await call(`${url}/`)).status, 200, "the slots are free again");
  const scrape = await scrapeOf(gateway);
  const count = valueOf(scrape, "kenri_refused_total", { limit: "arrivals_at_once" });
  assert.ok((count ?? 0) >= 2);
});

Deno.test("bodies of strangers that never arrive keep nobody from logging in", async () => {
  await using account = await startAccount();
  await using gateway = await startGateway(account, {
    HTTP_REQUESTS_AT_ONCE: "100", // two of them for strangers
  });
  const { url } = gateway;
  const head = "POST /logout/backchannel HTTP/1.1\r\nHost: 127.0.0.1\r\n" +
    "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nlogout_";
  using strangers = together(await Promise.all([1, 2].map(() => connectTo(url))));
  await Promise.all(strangers.map((stranger) => stranger.send(head)));
  const refused = async () => (await call(`${url}/docs`)).status === 503;
  await until("there is no slot left for other strangers", refused);
  assert.equal((await call(`${url}/`)).status, 200);
  assert.equal((await call(`${url}/login?error`)).json.code, "LOGIN_FAILED");
  assert.equal((await call(`${url}/login/callback`, { redirect: "manual" })).status, 302);
});

Deno.test("while sessions are checked by a slow account service, more than allowed are refused", async () => {
  const answers = Promise.withResolvers<void>();
  await using account = await startAccount();
  await using slow = serve(async () => {
    await answers.promise;
    return new Response("", { status: 500 });
  });
  const ann = await logIn(account);
  await using gateway = await startGateway({ ...account, url: slow.url }, {
    HTTP_REQUESTS_AT_ONCE: "2",
  });
  const waiting = [me(gateway, ann), me(gateway, ann)];
  await until("both wait", () => slow.asked.length >= 2);
  const third = await me(gateway, ann);
  assertError(third, 503, "SERVICE_UNAVAILABLE", "too many requests are under way, try again");
  assert.equal(third.headers.get("Retry-After"), "1");
  answers.resolve();
  for (const { status, json } of await Promise.all(waiting)) {
    assert.ok(status >= 502, `${status}`);
    assert.match(json.code, /^ACCOUNT_(TIMEOUT|BAD_GATEWAY)$/);
  }
});
