// A watermark is published only while the stream has every event that was committed up to a moment ago.
import assert from "node:assert/strict";
import { outbox } from "../../entitlement/outbox.ts";
import { NatsLink } from "../../shared/nats/link.ts";
import { watermarkSubject } from "../../shared/nats/watermark_subject.ts";
import type { Compared } from "../../shared/outbox/relay.ts";
import { publishWatermarks } from "../../shared/outbox/watermark.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { pause } from "../../shared/process/signals.ts";
import { ask } from "../../tools/servers/asking.ts";
import { startNats } from "../../tools/servers/nats.ts";
import { connectTo } from "../../tools/servers/nats_client.ts";
import { until } from "../../tools/servers/wait.ts";
import { ownDatabase } from "../support/databases.ts";
import { whileTableIsLocked } from "../support/locks.ts";
import { insertEvents } from "../support/outbox.ts";
import type { FreshPlace } from "../support/places.ts";
import { collectingLog, freshPlace } from "../support/relays.ts";

type Place = Pick<FreshPlace, "natsUrl" | "serviceUrl" | "subject">;

/** Publishes watermarks as a replica does, and hears them as another service does. */
async function startWatermarks({ natsUrl, serviceUrl, subject }: Place, mayCompare = true) {
  const database = openDatabase(serviceUrl, "watermark");
  const { log, lines } = collectingLog();
  const link = new NatsLink({ urls: natsUrl }, "watermark", log);
  const stopping = new AbortController();
  const stream = {
    name: "any",
    subjects: [subject] as [string],
    duplicateWindowMs: 1,
    replicas: 1,
  };
  const compared: Compared & { isAllowed: boolean } = { isAllowed: mayCompare };
  const connecting = keepConnected(link, compared, stopping.signal);
  const parts = { database, outbox, link, compared, log };
  const running = publishWatermarks(parts, stream, stopping.signal);
  const connection = await connectTo(natsUrl, { waitOnFirstConnect: true });
  let heard = 0;
  connection.subscribe(watermarkSubject(subject), { callback: () => void heard++ });
  return {
    lines,
    compare: () => compared.isAllowed = true,
    heardWithin: async (ms: number) => {
      const before = heard;
      await new Promise((over) => setTimeout(over, ms));
      return heard - before;
    },
    isHeard: () => {
      const before = heard;
      return until("a watermark is heard", () => heard > before);
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await running;
      await connecting;
      await connection.close();
      await link.close();
      await database.end();
    },
  };
}

/** As the relay does. */
async function keepConnected(
  link: NatsLink,
  compared: Compared & { isAllowed: boolean },
  stop: AbortSignal,
): Promise<void> {
  for await (const session of link.sessions(stop)) {
    while (!compared.isAllowed && !session.signal.aborted) await pause(50, session.signal);
    compared.session = session;
    await pause(3_600_000, session.signal);
  }
}

const setAll = ({ ownerUrl }: { ownerUrl: string }, columns: string) =>
  ask(ownerUrl, `update outbox_events set ${columns}`);
const published = "status = 'PUBLISHED', published_at = now()";
const severalMs = 2_500; // at least two watermarks
const onTheirWayMs = 200; // one that was sent before

async function isSilent(watermarks: Awaited<ReturnType<typeof startWatermarks>>): Promise<void> {
  await watermarks.heardWithin(onTheirWayMs);
  assert.equal(await watermarks.heardWithin(severalMs), 0);
}

Deno.test("watermarks are published while no event waits, about one each second", async () => {
  await using place = await freshPlace();
  await using watermarks = await startWatermarks(place);
  await watermarks.isHeard();
  await insertEvents(place.ownerUrl, [{ key: "ann:book", version: 1 }]);
  await setAll(place, published);
  const heard = await watermarks.heardWithin(3_500);
  assert.ok(heard >= 2 && heard <= 4, `${heard} were heard`);
  assert.deepEqual(watermarks.lines.filter((line) => /^(warn|error)/.test(line)), []);
});

Deno.test("no watermark is published while an event waits, in whatever state, and then again", async () => {
  await using place = await freshPlace();
  await using watermarks = await startWatermarks(place);
  await watermarks.isHeard();
  await insertEvents(place.ownerUrl, [{ key: "ann:book", version: 1 }]);
  await isSilent(watermarks);
  await setAll(place, "status = 'IN_FLIGHT', lease_until = now() + interval '1 minute'");
  await isSilent(watermarks);
  await setAll(place, "status = 'PENDING', next_retry_at = now() + interval '1 hour'");
  await isSilent(watermarks);
  await setAll(place, published);
  await watermarks.isHeard();
  await setAll(place, "status = 'PENDING', published_at = null"); // republished: the stream lost it
  await isSilent(watermarks);
});

Deno.test("no watermark is published before the relay has compared the stream of a new connection", async () => {
  await using place = await freshPlace();
  await using watermarks = await startWatermarks(place, false);
  await isSilent(watermarks);
  watermarks.compare();
  await watermarks.isHeard();
});

Deno.test("no watermark is published while an event has failed for good", async () => {
  await using place = await freshPlace();
  await insertEvents(place.ownerUrl, [{ key: "ann:book", version: 1 }]);
  await setAll(place, "status = 'FAILED'");
  await using watermarks = await startWatermarks(place);
  await isSilent(watermarks);
  await setAll(place, published);
  await watermarks.isHeard();
});

Deno.test("an event of this moment does not hold up the watermark", async () => {
  await using place = await freshPlace();
  await using watermarks = await startWatermarks(place);
  await insertEvents(place.ownerUrl, [{ key: "ann:book", version: 1 }]);
  await setAll(place, "created_at = now() + interval '1 minute'");
  await watermarks.isHeard();
});

Deno.test("a look at the outbox that took too long says nothing about now", async () => {
  await using place = await freshPlace();
  await using watermarks = await startWatermarks(place);
  await watermarks.isHeard();
  await whileTableIsLocked(place.ownerUrl, "outbox_events", async (release) => {
    await watermarks.heardWithin(severalMs);
    await release();
    assert.equal(await watermarks.heardWithin(700), 0);
  });
  await watermarks.isHeard();
});

Deno.test("without NATS no watermark is kept for later, and without the database that is said once", async () => {
  await using nats = await startNats();
  await using database = await ownDatabase();
  const place = { natsUrl: nats.url, serviceUrl: database.serviceUrl, subject: "watermarked" };
  await using watermarks = await startWatermarks(place);
  await watermarks.isHeard();
  await nats.stop();
  await watermarks.heardWithin(4_000);
  await insertEvents(database.ownerUrl, [{ key: "ann:book", version: 1 }]);
  await nats.start();
  assert.equal(await watermarks.heardWithin(severalMs), 0);
  await setAll(database, published);
  await watermarks.isHeard();
  await database.server.stop();
  await until("it is said", () => complaints(watermarks.lines).length > 0);
  await watermarks.heardWithin(severalMs);
  assert.equal(complaints(watermarks.lines).length, 1);
  await database.server.start();
  await watermarks.isHeard();
});

const complaints = (lines: string[]) => lines.filter((line) => /No watermark/.test(line));
