// A service that is made of the organs and little else (docs/new-service.md) keeps what they promise.
// Its crashes are rows of the crash matrix.
import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { environmentName } from "../../shared/process/program.ts";
import { ask } from "../../tools/servers/asking.ts";
import { until } from "../../tools/servers/wait.ts";
import { publish } from "../support/events.ts";
import { natsUrl, readStream } from "../support/streams.ts";
import { schema } from "./config.ts";
import { schemaVersion, settings } from "./derived.ts";
import { page, withQuotes } from "./page.ts";
import { countsIn, folder, freshPlace, migrations, remind, startReminders } from "./started.ts";

const finished = {
  "reminders FIRED": 1,
  "events PUBLISHED": 1,
  received: 1,
  counted: 1,
};

// A reminder that fires then was not found by chance.
const noPolls = { REMINDERS_FIRING_POLL_INTERVAL: "1h" };

Deno.test("a reminder fires within moments of its time, and is counted once", async () => {
  await using place = await freshPlace();
  await using service = await startReminders({ ...place.settings, ...noPolls });
  const reminder = { key: "one", user: "ann", text: "call", at: Date.now() + 1_500 };
  const first = await remind(service.url, reminder);
  const again = await remind(service.url, reminder);
  assert.equal(first.status, 200);
  assert.deepEqual([again.body, again.replayed], [first.body, true]);
  const other = await remind(service.url, { ...reminder, text: "write" });
  assert.equal(other.status, 409);
  await remind(service.url, { ...reminder, key: "two", at: Date.now() + 3_600_000 });
  await untilCounts(place.ownerUrl, { ...finished, "reminders PENDING": 1 });
  const [{ late_ms } = { late_ms: NaN }] = await ask<{ late_ms: number }>(
    place.ownerUrl,
    `select extract(epoch from fired_at - remind_at)::float8 * 1000 as late_ms
     from reminders where status = 'FIRED'`,
  );
  assert.ok(late_ms >= 0 && late_ms < 500, `${late_ms} ms late`);
});

Deno.test("a reminder of the past fires at once", async () => {
  await using place = await freshPlace();
  await using service = await startReminders({ ...place.settings, ...noPolls });
  await remind(service.url, { key: "one", user: "ann", text: "call", at: 0 });
  await untilCounts(place.ownerUrl, finished);
});

Deno.test("an event that is delivered again is not counted again, and another one is", async () => {
  await using place = await freshPlace();
  await using service = await startReminders(place.settings);
  const { settings } = place;
  const [stream = "", subject = ""] = ["STREAM", "SUBJECT"]
    .map((name) => settings[`REMINDERS_NATS_${name}`]);
  await remind(service.url, { key: "one", user: "ann", text: "call", at: 0 });
  await untilCounts(place.ownerUrl, finished);
  const [{ data } = { data: new Uint8Array() }] = await readStream(natsUrl, stream);
  // Without a Nats-Msg-Id, by which the stream itself would drop the first one.
  const other = { event_id: crypto.randomUUID(), payload: { user_id: "ann" } };
  const bodies = [data, new TextEncoder().encode(JSON.stringify(other))];
  await publish(natsUrl, subject, bodies.map((body) => ({ body })));
  await untilCounts(place.ownerUrl, { ...finished, received: 2, counted: 2 });
});

Deno.test("the derived file has all settings and the newest migration", async () => {
  assert.deepEqual(settings, Object.keys(schema.shape).map(environmentName).sort());
  const files = await Array.fromAsync(Deno.readDir(migrations));
  assert.equal(schemaVersion, Math.max(...files.map(({ name }) => parseInt(name) || 0)));
});

Deno.test("the service has at most 150 lines, without imports, comments and empty lines", async () => {
  const files = await Array.fromAsync(Deno.readDir(folder));
  const own = files.filter(({ name }) => !/_test\.ts$|^derived|^page|^started/.test(name));
  let lines = 0;
  for (const { name } of own.filter(({ isFile }) => isFile)) {
    const code = (await Deno.readTextFile(folder + name)).replaceAll(/^import [^;]*;$/gm, "");
    lines += code.split("\n").filter((line) => !/^\s*(\/\/.*)?$/.test(line)).length;
  }
  assert.ok(lines > 100 && lines <= 150, `${lines} lines`);
});

Deno.test("the page quotes the files as they are", async () => {
  const text = await Deno.readTextFile(page);
  assert.equal(text, await withQuotes(text));
  assert.equal([...text.matchAll(/^```(?:ts|sql) tests\/reminders\//gm)].length, 7);
});

async function untilCounts(ownerUrl: string, expected: object): Promise<void> {
  let found: Record<string, number> = {};
  await until("everything is as expected", async () => {
    found = await countsIn(ownerUrl);
    return isDeepStrictEqual(found, expected);
  }).catch(() => assert.deepEqual(found, expected));
}
