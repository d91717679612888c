// A service starts only on a stream that has, or can be given, the wanted settings.
import assert from "node:assert/strict";
import { type JetStreamManager, RetentionPolicy, StorageType, type StreamConfig } from "nats";
import { grant } from "../support/api.ts";
import { pointsSubjectOf } from "../../tools/load/stage.ts";
import { freshDatabase } from "../support/databases.ts";
import { settingsOf } from "../support/entitlement.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { freshStreamNames, makeStream, natsUrl, readStream, withNats } from "../support/streams.ts";
import { inTime, until } from "../../tools/servers/wait.ts";

function withStreams<Result>(work: (manager: JetStreamManager) => Promise<Result>) {
  return withNats(natsUrl, async (connection) => await work(await connection.jetstreamManager()));
}

Deno.test("a stream whose settings can't be changed in place stops the start", async () => {
  await using database = await freshDatabase("entitlement");
  const unfit: Partial<StreamConfig>[] = [
    { retention: RetentionPolicy.Workqueue },
    { storage: StorageType.Memory },
  ];
  for (const config of unfit) {
    const names = freshStreamNames();
    await makeStream(natsUrl, names, config);
    await using service = await startService("entitlement", settingsOf(database.serviceUrl, names));
    assert.equal(await inTime("it ends", service.exited), 1);
    const last = service.log.findLast(({ level }) => level === "error" || level === "fatal");
    assert.match(
      String(last?.message),
      new RegExp(`Stream "${names.stream}" can't get the wanted`),
    );
    const kept = await withStreams((manager) => manager.streams.info(names.stream));
    for (const [key, value] of Object.entries(config)) {
      assert.equal(kept.config[key as keyof StreamConfig], value);
    }
  }
});

Deno.test("a subject that belongs to another stream stops the start", async () => {
  await using database = await freshDatabase("entitlement");
  const names = freshStreamNames();
  await makeStream(natsUrl, names, {});
  const other = { ...names, stream: `${names.stream}_other` };
  await using service = await startService("entitlement", settingsOf(database.serviceUrl, other));
  assert.equal(await inTime("it ends", service.exited), 1);
  assert.match(JSON.stringify(service.log), /subjects overlap/);
});

Deno.test("a server that can't provide the wanted stream replicas stops the start", async () => {
  await using database = await freshDatabase("entitlement");
  const settings = { ...settingsOf(database.serviceUrl), NATS_REPLICAS: "3" };
  await using service = await startService("entitlement", settings);
  assert.equal(await inTime("it ends", service.exited), 1);
  assert.match(JSON.stringify(service.log), /replicas > 1 not supported/);
});

Deno.test("a stream whose settings can be changed in place gets the wanted settings", async () => {
  await using database = await freshDatabase("entitlement");
  const names = freshStreamNames();
  const second = 1_000_000_000;
  await makeStream(natsUrl, names, {
    subjects: ["other", names.subject].map((subject) => `${names.stream}.${subject}`),
    max_age: 3_600 * second,
    duplicate_window: 5 * second,
    max_bytes: 10_000_000,
  });
  const settings = { ...settingsOf(database.serviceUrl, names) };
  settings["ENTITLEMENT_NATS_DUPLICATE_WINDOW"] = "90s";
  await using service = await startService("entitlement", settings);
  await grant(service.url);
  await until("it relays", async () => (await readStream(natsUrl, names.stream)).length === 1);
  const { config } = await withStreams((manager) => manager.streams.info(names.stream));
  assert.deepEqual(config.subjects, [names.subject, pointsSubjectOf(names)]);
  assert.equal(config.max_age, 7 * 86_400 * second);
  assert.equal(config.duplicate_window, 90 * second);
  assert.equal(config.retention, "limits");
  assert.equal(config.max_bytes, 10_000_000); // stays as the operator set it
});
