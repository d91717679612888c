// The entitlement service asks over NATS what was received, and the connection is lost meanwhile.
import assert from "node:assert/strict";
import { receiverOver } from "../../entitlement/reconciliation/ask.ts";
import { NatsLink } from "../../shared/nats/link.ts";
import { startNats } from "../../tools/servers/nats.ts";
import { collectingLog } from "../support/relays.ts";
import { withNats } from "../support/streams.ts";
import { inTime } from "../../tools/servers/wait.ts";

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
