// The relay publishes again what a stream lost, the oldest first. Until the last of it has arrived, an
// event says what was true once.
import assert from "node:assert/strict";
import { Proxy } from "../../tools/chaos/proxy.ts";
import { withPlanted } from "../../tools/planted.ts";
import { freePort } from "../../tools/servers/free_port.ts";
import { until } from "../../tools/servers/wait.ts";
import { post, startAccount, untilPublished } from "../support/account.ts";
import { publish } from "../support/events.ts";
import { logIn, me, startGateway, untilItKnows } from "../support/gateway.ts";
import { scrapeOf, valueOf } from "../support/metrics.ts";
import { deleteStream, makeStream, natsUrl, readStream } from "../support/streams.ts";

Deno.test("an old event that a new stream gets again lets nobody in", async () => {
  await using toNats = new Proxy(freePort(), Number(new URL(natsUrl).port));
  const relayUrl = withPlanted(`nats://127.0.0.1:${toNats.port}`, "kenri");
  await using account = await startAccount({ NATS_URL: relayUrl });
  await using gateway = await startGateway(account, { NATS_URL: natsUrl });
  const person = await logIn(account);
  const { stream, subject } = account;
  await untilItKnows(gateway, person);
  const [registered] = await readStream(natsUrl, stream);
  await post(`${account.url}/v1/users/${person.userId}:suspend`, { reason: "spam" });
  await until("the user is kept out", async () => (await me(gateway, person)).status === 403);
  await untilPublished(account.database.ownerUrl);
  toNats.set({ kind: "cut" });
  const before = await eventsHandled(gateway);
  await deleteStream(natsUrl, stream);
  await makeStream(natsUrl, account);
  await until("the gateway takes the old event for a new one", async () => {
    await publish(natsUrl, subject, [{ body: registered?.data ?? new Uint8Array() }]);
    return await eventsHandled(gateway) > before;
  });
  assert.equal((await me(gateway, person)).status, 403);
});

async function eventsHandled(gateway: { url: string }): Promise<number> {
  const handled = { outcome: "handled" };
  return valueOf(await scrapeOf(gateway), "gateway_account_events_total", handled) ?? 0;
}
