// With OTEL_DENO a request of a person is one trace over the gateway and the services behind it, and no
// span has anything of the person.
import assert from "node:assert/strict";
import { post, startAccount } from "../support/account.ts";
import { call } from "../support/api.ts";
import { logIn, me, startGateway, untilConnected } from "../support/gateway.ts";
import { receiveTraces } from "./otlp.ts";

Deno.test("a request of a person is one trace over the gateway and the service behind it", async () => {
  await using receiver = receiveTraces();
  const traceId = crypto.randomUUID().replaceAll("-", "");
  const caller = "b7ad6b7169203331";
  const email = "secret-ann@example.com";
  const account = await startAccount({
    ...receiver.settings("account"),
    ACCOUNT_DEBUG_ENABLED: "true",
  });
  const gateway = await startGateway(account, receiver.settings("gateway"));
  await untilConnected(gateway);
  const visitor = await logIn(account, { subject: "secret-subject" });
  assert.equal((await me(gateway, visitor)).status, 200);
  const own = await call(`${gateway.url}/v1/users/${visitor.userId}`, {
    headers: visitor.as({ traceparent: `00-${traceId}-${caller}-01` }),
  });
  assert.equal(own.status, 200, own.text);
  await call(`${gateway.url}/login/callback?code=secret-code&state=secret-state`, {});
  assert.equal((await post(`${account.url}/debug/account/find`, { email })).status, 200);
  await gateway.stop(); // a service sends its last spans at the exit
  await account.service.stop();
  await account[Symbol.asyncDispose]();

  const ofTrace = receiver.spans.filter((span) => span.traceId === traceId);
  const steps = [ // the last one first
    ["account", "GET /v1/users/{user_id}"],
    ["gateway", "ask account"],
    ["gateway", "GET /v1/users/{user_id}"],
  ] as const;
  let step = ofTrace.find(({ service, name }) => `${service} ${name}` === steps[0]?.join(" "));
  for (const [service, name] of steps) {
    assert.deepEqual([step?.service, step?.name], [service, name]);
    const parent = step?.parentSpanId;
    if (name === steps.at(-1)?.[1] && service === "gateway") assert.equal(parent, caller);
    step = ofTrace.find(({ spanId }) => spanId === parent);
  }
  const all = JSON.stringify(receiver.spans);
  assert.match(all, /GET \/login\/callback/);
  assert.match(all, /POST \/debug\/account\/find/);
  const cookie = visitor.cookie.split("=")[1] ?? "";
  for (const secret of ["secret", visitor.userId, cookie]) assert.ok(!all.includes(secret), secret);
});
