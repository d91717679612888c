// What a logout means for the replica that carries it out, before any event of it arrives.
import assert from "node:assert/strict";
import { Proxy } from "../../tools/chaos/proxy.ts";
import { withPlanted } from "../../tools/planted.ts";
import { freePort } from "../../tools/servers/free_port.ts";
import { startAccount } from "../support/account.ts";
import { csrf, logIn, logOut, me, startGateway, untilItKnows } from "../support/gateway.ts";
import { natsUrl } from "../support/streams.ts";

Deno.test("a logout counts at once on the replica that stored it, without its event", async () => {
  await using account = await startAccount();
  await using link = new Proxy(freePort(), Number(new URL(natsUrl).port));
  await using gateway = await startGateway(account, {
    NATS_URL: withPlanted(`nats://127.0.0.1:${link.port}`, "kenri"),
    GATEWAY_SESSION_STALENESS: "1h", // it goes on by what it knows
  });
  const [ann, bob] = [await logIn(account), await logIn(account)];
  const bobsOther = await logIn(account, { subject: bob.subject });
  for (const person of [ann, bob]) await untilItKnows(gateway, person);
  link.set({ kind: "cut" });
  assert.equal((await logOut(gateway, ann, await csrf(gateway, ann))).status, 204);
  assert.equal((await me(gateway, ann)).status, 401);
  assert.equal((await logOut(gateway, bob, await csrf(gateway, bob), "?all=true")).status, 204);
  for (const session of [bob, bobsOther]) assert.equal((await me(gateway, session)).status, 401);
});
