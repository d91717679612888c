// Redis in `deno task dev`, for services of which one uses it and none has a database.
import assert from "node:assert/strict";
import { program as sender } from "../../sender/program.ts";
import type { Service } from "../../shared/process/program.ts";
import { type DevServers, startWhatIsMissing } from "../../tools/dev/dev_servers.ts";
import { devSettings, type Settings } from "../../tools/dev/settings.ts";
import { writeUrls } from "../../tools/dev/urls_file.ts";
import { redisCommand, redisUrl } from "../support/redis.ts";
import { dataFolder } from "./dev.ts";
import { natsUrl } from "../support/streams.ts";

const services: Record<string, Service> = {
  sender: { ...sender, usesRedis: true },
};

function start(path: string, more: Settings = {}, fresh = false): Promise<DevServers> {
  const settings: Settings = { KENRI_DATA: path, NATS_URL: natsUrl, ...more };
  return startWhatIsMissing(services, (name) => settings[name], fresh, () => {});
}

Deno.test("dev keeps the data of its Redis until a fresh start", async () => {
  await using folder = await dataFolder();
  for (const [fresh, kept] of [[false, null], [false, "1"], [true, null]] as const) {
    await using servers = await start(folder.path, {}, fresh);
    const url = servers.urls.redis ?? "";
    assert.equal(await redisCommand(url, "GET", "kept"), kept);
    await redisCommand(url, "SET", "kept", 1);
  }
});

Deno.test("the services and the developer's shell get the url of dev's Redis", async () => {
  await using folder = await dataFolder();
  await using servers = await start(folder.path);
  const settings = devSettings(() => undefined, servers.urls);
  assert.equal(settings["REDIS_URL"], servers.urls.redis);
  assert.equal(await redisCommand(settings["REDIS_URL"] ?? "", "PING"), "PONG");
  const file = servers.folder?.urls ?? "";
  await writeUrls(file, settings, servers.administrator);
  const text = await Deno.readTextFile(file);
  assert.ok(text.includes(`export REDIS_URL='${servers.urls.redis}'\n`));
});

Deno.test("no Redis is started beside a given one, or for services that use none", async () => {
  await using folder = await dataFolder();
  await using given = await start(folder.path, { REDIS_URL: redisUrl });
  assert.deepEqual([given.urls, given.folder], [{}, undefined]);
  const read = (name: string) => name === "NATS_URL" ? natsUrl : undefined;
  await using unused = await startWhatIsMissing({ sender }, read, false, () => {});
  assert.deepEqual([unused.urls, unused.folder], [{}, undefined]);
});

Deno.test("the death of dev's Redis is reported with what to do", async () => {
  await using folder = await dataFolder();
  await using servers = await start(folder.path);
  const pid = /process_id:(\d+)/.exec(
    String(await redisCommand(servers.urls.redis ?? "", "INFO", "server")),
  )?.[1];
  Deno.kill(Number(pid), "SIGKILL");
  await assert.rejects(Promise.race(servers.deaths), /^Error: redis-server ended by itself/);
});
