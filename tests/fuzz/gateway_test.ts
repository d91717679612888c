// Every request to the gateway is answered as its description says, whatever a browser or a program
// sends, and nothing of a session reaches its log.
import assert from "node:assert/strict";
import fc from "fast-check";
import { startIssuer } from "../../tools/issuer/issuer.ts";
import { bearer, newClient, tokensOf } from "../support/access.ts";
import { startAccount } from "../support/account.ts";
import { serve } from "../support/fake_service.ts";
import { csrf, logIn, startGateway } from "../support/gateway.ts";
import { startStack } from "../support/stack.ts";
import { askAnything } from "./ask_anything.ts";

const ticket = { ticket_id: "t-1", status: "QUEUED", expires_at: "2026-01-02T03:04:05Z" };
const ops = newClient("ops", "debug:read", "metrics:read", "operations:write");

Deno.test("any request to the gateway is answered as its API describes", async () => {
  await using account = await startAccount();
  await using issuer = await startIssuer();
  await using stack = await startStack();
  await using matchmaking = serve(() => Response.json(ticket));
  await using gateway = await startGateway(account, {
    ...tokensOf(ops),
    GATEWAY_DEBUG_ENABLED: "true",
    GATEWAY_ISSUER: issuer.url,
    GATEWAY_CLIENT_ID: issuer.clientId,
    GATEWAY_CLIENT_SECRET: issuer.clientSecret,
    GATEWAY_ENTITLEMENT_URL: stack.entitlement.url,
    GATEWAY_NOTIFICATION_URL: stack.notification.url,
    GATEWAY_MATCHMAKING_URL: matchmaking.url,
    GATEWAY_RATE_LOGIN: "1000000",
    GATEWAY_RATE_USER: "1000000",
    GATEWAY_RATE_USER_BURST: "1000000",
  });
  const ann = await logIn(account);
  const asAnn = ann.as({ ...await csrf(gateway, ann), ...bearer(ops.token) });
  await askAnything(gateway.url, {
    runs: 120,
    credential: fc.oneof(
      { weight: 8, arbitrary: fc.constant(asAnn) },
      { weight: 1, arbitrary: fc.constantFrom({}, ann.as(), ann.as({ Cookie: "kenri=a.b.c" })) },
    ),
    without: ["post /logout"], // it would end the session of all other requests
    rare: ["403", "409", "412", "429", "post /logout/backchannel 200"],
  });
  const errors = gateway.log.filter(({ level }) => level === "error" || level === "fatal");
  assert.deepEqual(errors, []);
  const log = JSON.stringify(gateway.log);
  assert.ok(!log.includes(ann.cookie) && !log.includes(asAnn["X-CSRF-Token"] ?? ""));
});
