// What callers and operators see while the database or NATS is unavailable, at the start and later.
import assert from "node:assert/strict";
import { startNats } from "../../tools/servers/nats.ts";
import { assertError, call, grant, list, post, someFields } from "../support/api.ts";
import { freshDatabase, ownDatabase } from "../support/databases.ts";
import { rowCounts, settingsOf } from "../support/entitlement.ts";
import { type ServiceProcess, startService } from "../../tools/servers/service_process.ts";
import { freshStreamNames, readStream } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";

const databaseMissing = "the database can't be reached or lacks migrations";
const natsMissing = "NATS can't be reached";

const isReady = async (url: string) => (await call(`${url}/readyz`)).status === 200;

const notReady = async (url: string): Promise<string> => (await call(`${url}/readyz`)).json.message;

async function assertNotReady(url: string, ...missing: string[]): Promise<void> {
  const ready = await call(`${url}/readyz`);
  assertError(ready, 503, "SERVICE_UNAVAILABLE", `not ready: ${missing.join(", ")}`);
  assert.match(ready.headers.get("Retry-After") ?? "", /^[1-9]\d*$/);
  assert.equal((await call(`${url}/livez`)).status, 200);
}

Deno.test("without the database every request is asked to come back, and its key then makes one change", async () => {
  await using database = await ownDatabase();
  await using service = await startService("entitlement", settingsOf(database.serviceUrl));
  const { url } = service;
  assert.equal((await grant(url, { user_id: "bob" }, "before")).status, 200);
  await until("it is ready", () => isReady(url));

  await database.server.kill();
  const away = [
    await grant(url, {}, "during"),
    ...await Promise.all(Array.from({ length: 50 }, () => grant(url, {}, "during"))),
    await list(url, "bob"),
  ];
  for (const answer of away) {
    assertError(answer, 503, "SERVICE_UNAVAILABLE");
    assert.match(answer.headers.get("Retry-After") ?? "", /^[1-9]\d*$/);
  }
  await assertNotReady(url, databaseMissing);
  assertError(await post(url, "grants", {}, "during"), 400, "BAD_REQUEST");

  await database.server.start();
  await until("it is ready again", () => isReady(url));
  assert.equal((await rowCounts(database.ownerUrl)).outbox_events, 1);
  const first = await grant(url, {}, "during");
  const again = await grant(url, {}, "during");
  assert.deepEqual([first.status, first.json.version], [200, 1]);
  assert.deepEqual([again.headers.get("Idempotency-Replayed"), again.text], ["true", first.text]);
  assert.deepEqual(await rowCounts(database.ownerUrl), {
    entitlements: 2,
    idempotency_keys: 2,
    outbox_events: 2,
    entitlement_audit: 2,
  });
});

Deno.test("a database that does not exist yet, or refuses the role, counts as unavailable", async () => {
  await using database = await freshDatabase("entitlement");
  const urls = [`${database.serviceUrl}_missing`, database.serviceUrl.replace("//", "//no_such_")];
  for (const url of urls) {
    await using service = await startService("entitlement", settingsOf(url));
    assertError(await grant(service.url), 503, "SERVICE_UNAVAILABLE");
    await until("it has found NATS", () => /Connected/.test(JSON.stringify(service.log)));
    await until(
      "it has its stream",
      async () => !/lacks a stream/.test(await notReady(service.url)),
    );
    await assertNotReady(service.url, databaseMissing);
    assert.equal(await service.stop(), 0);
  }
});

Deno.test("without NATS changes are committed, and published when it is back", async () => {
  await using nats = await startNats();
  await using database = await ownDatabase();
  const names = freshStreamNames();
  const settings = { ...settingsOf(database.serviceUrl, names), NATS_URL: nats.url };
  await using service = await startService("entitlement", settings);
  await until("it is ready", () => isReady(service.url));
  await nats.kill();
  await until("it notices", async () => !await isReady(service.url));
  await assertNotReady(service.url, natsMissing);
  assert.equal((await grant(service.url)).status, 200);
  await nats.start();
  await until(
    "it is published",
    async () =>
      await isReady(service.url) && (await readStream(nats.url, names.stream)).length === 1,
  );
});

Deno.test("a replica without a relay needs no NATS to be ready", async () => {
  await using database = await freshDatabase("entitlement");
  await using service = await startService("entitlement", {
    ...settingsOf(database.serviceUrl),
    ENTITLEMENT_OUTBOX_ENABLED: "false",
    NATS_URL: "nats://127.0.0.1:1",
  });
  await until("it is ready", () => isReady(service.url));
});

Deno.test("a start without database and NATS waits for both, logs that once, and then works", async () => {
  await using nats = await startNats();
  await using database = await ownDatabase();
  await Promise.all([nats.stop(), database.server.stop()]);
  const names = freshStreamNames();
  const settings = { ...settingsOf(database.serviceUrl, names), NATS_URL: nats.url };
  await using service = await startService("entitlement", settings);
  await assertNotReady(service.url, databaseMissing, natsMissing);
  assertError(await post(service.url, "grants", someFields, "k"), 503, "SERVICE_UNAVAILABLE");
  // Long enough for several attempts to connect.
  await new Promise((later) => setTimeout(later, 1_500));
  assert.equal(linesAbout(service, /nats/i), 1);
  assert.equal(linesAbout(service, /database|retention/i), 1);

  await nats.start();
  await until(
    "NATS is found",
    async () =>
      (await call(`${service.url}/readyz`)).json.message === `not ready: ${databaseMissing}`,
  );
  await new Promise((later) => setTimeout(later, 1_500));
  assert.ok(service.log.length <= 8, JSON.stringify(service.log));
  await database.server.start();
  await until("it is ready", () => isReady(service.url));
  assert.equal((await grant(service.url)).status, 200);
  await until(
    "it is published",
    async () => (await readStream(nats.url, names.stream).catch(() => [])).length === 1,
  );
  assert.equal(await service.stop(), 0);
});

function linesAbout({ log }: ServiceProcess, what: RegExp): number {
  return log.filter(({ level, message }) => level !== "info" && what.test(message)).length;
}
