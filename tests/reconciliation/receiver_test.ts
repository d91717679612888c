// The entitlement service asks over NATS what was received.
import assert from "node:assert/strict";
import { RequestStrategy } from "nats";
import { receiverOver } from "../../entitlement/reconciliation/ask.ts";
import { NatsLink } from "../../shared/nats/link.ts";
import { subjectOfChecks } from "../../proto/notification/receipts.ts";
import { freshPlace, startNotification } from "../support/notification.ts";
import { startNats } from "../../tools/servers/nats.ts";
import { collectingLog } from "../support/relays.ts";
import { withNats } from "../support/streams.ts";
import { inTime, until } from "../../tools/servers/wait.ts";

Deno.test("a request for receipts fails at once when its connection is lost", async () => {
  await using nats = await startNats();
  const stop = new AbortController();
  const link = new NatsLink({ urls: nats.url }, "entitlement", collectingLog().log);
  await link.session(stop.signal);
  await withNats(nats.url, async (silent) => {
    const asked = Promise.withResolvers<void>();
    silent.subscribe("events.check", { callback: () => asked.resolve() });
    await silent.flush();
    const answer = receiverOver(link, "events")([crypto.randomUUID()]);
    answer.catch(() => {});
    await asked.promise;
    await nats.kill();
    const refused = assert.rejects(
      answer,
      /can't ask the notification service: the connection/,
    );
    await inTime("it fails", refused);
  });
  stop.abort();
  await link.close();
});

Deno.test("of several replicas one answers", async () => {
  await using place = await freshPlace();
  await using _one = await startNotification(place);
  await using _two = await startNotification(place);
  await withNats(place.natsUrl, async (asker) => {
    const question = JSON.stringify({ event_ids: [crypto.randomUUID()] });
    const answers = async () => {
      const options = { strategy: RequestStrategy.Timer, maxWait: 500 };
      return await Array.fromAsync(
        await asker.requestMany(subjectOfChecks(place.subject), question, options),
      );
    };
    // Both have subscribed to it by then.
    await until("they answer", async () => (await answers()).length > 0);
    for (let asked = 0; asked < 3; asked++) assert.equal((await answers()).length, 1);
  });
});
