// The bundles work alone in a folder: without deno.json or node_modules, with an empty cache, and
// without permission to fetch or import anything.
import assert from "node:assert/strict";
import { bundleAll } from "../../tools/bundle.ts";
import type { ProgramName, ServiceName } from "../../tools/services.ts";
import { grant, revoke } from "../support/api.ts";
import { bothUnmigrated } from "../support/places.ts";
import { variable } from "../faults/crash/fault_point.ts";
import { entryPoint, imageCommand } from "./image.ts";
import { read } from "../support/pages.ts";
import { type Settings, startService } from "../../tools/servers/service_process.ts";
import { joined, ticket, untilReady } from "../support/matchmaking.ts";
import { freshRedis } from "../support/redis.ts";
import { deleteStream, freshStreamNames, natsUrl, readStream } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";
import { countRows } from "../../tools/servers/asking.ts";
import { freePort } from "../../tools/servers/free_port.ts";
import { startIssuer } from "../../tools/issuer/issuer.ts";
import { freshDatabase } from "../support/databases.ts";
import { Browser } from "../support/login.ts";

Deno.test("the bundles migrate and carry a change to its notification, without any module around", async () => {
  await using folder = await temporaryFolder();
  await bundleAll(folder.path, () => {});
  await assertNoFaultPoint(folder.path);
  await using place = bothUnmigrated();
  const settings: Settings = {
    ...place.settings,
    NOTIFICATION_DEBUG_ENABLED: "true",
    DENO_DIR: `${folder.path}/empty-cache`,
  };
  await migrateWithBundle(folder.path, settings);
  await provisionWithBundle(folder.path, settings);

  const program = programIn(folder.path);
  {
    await using entitlement = await startService("entitlement", settings, program);
    await using notification = await startService("notification", settings, program);
    const granted = await grant(entitlement.url, {}, "k1");
    assert.equal(granted.status, 200, granted.text);
    assert.equal((await revoke(entitlement.url, {}, "k2")).json.version, 2);
    await until("both are sent", async () => {
      const sent = "notifications where status = 'SENT'";
      return await countRows(place.owners.notification, sent) === 2;
    });
    const inbox = await fetch(`${notification.url}/debug/notification/inbox/ann`);
    const { notifications } = await inbox.json();
    assert.deepEqual(
      notifications.map(({ status }: { status: string }) => status),
      ["SENT", "SENT"],
    );
    assert.deepEqual([await entitlement.stop(), await notification.stop()], [0, 0]);
  }
  await deleteStream(natsUrl, place.stream);
  await logInWithBundles(folder.path);
  await matchWithBundle(folder.path);
});

// The libraries of the login, the files of the page and the names of two services are in the bundles.
async function logInWithBundles(folder: string): Promise<void> {
  await using database = await freshDatabase("account");
  await using issuer = await startIssuer();
  const { stream, subject } = freshStreamNames();
  const url = `http://127.0.0.1:${freePort()}`;
  const settings = { NATS_URL: natsUrl, DENO_DIR: `${folder}/empty-cache` };
  await using account = await startService("account", {
    ...settings,
    ACCOUNT_DATABASE_URL: database.serviceUrl,
    ACCOUNT_NATS_STREAM: stream,
    ACCOUNT_NATS_SUBJECT: subject,
  }, programIn(folder));
  await using gateway = await startService("gateway", {
    ...settings,
    GATEWAY_ACCOUNT_URL: account.url,
    GATEWAY_CLIENT_ID: issuer.clientId,
    GATEWAY_CLIENT_SECRET: issuer.clientSecret,
    GATEWAY_HTTP_PORT: new URL(url).port,
    GATEWAY_ISSUER: issuer.url,
    GATEWAY_NATS_STREAM: stream,
    GATEWAY_NATS_SUBJECT: subject,
    GATEWAY_PUBLIC_URL: url,
    GATEWAY_SESSION_KEYS: "k".repeat(43),
  }, programIn(folder));
  const browser = new Browser();
  assert.equal((await browser.logIn(url)).status, 302);
  assert.equal(await browser.me(url), 200);
  for (const path of ["/", "/page.js", "/page.css"]) {
    const { status, text } = await browser.open(`${url}${path}`);
    assert.ok(status === 200 && text.length > 500, `${path}: ${status} ${text}`);
  }
  assert.deepEqual([await gateway.stop(), await account.stop()], [0, 0]);
  await deleteStream(natsUrl, stream);
}

// The scripts of Redis are in the bundle, and the library that sends them.
async function matchWithBundle(folder: string): Promise<void> {
  await using redis = await freshRedis();
  const { stream, subject } = freshStreamNames();
  await using matchmaking = await startService("matchmaking", {
    DENO_DIR: `${folder}/empty-cache`,
    MATCHMAKING_NATS_STREAM: stream,
    MATCHMAKING_NATS_SUBJECT: subject,
    NATS_URL: natsUrl,
    REDIS_URL: redis.url,
  }, programIn(folder));
  await untilReady(matchmaking);
  const ann = await joined(matchmaking, "ann");
  await joined(matchmaking, "bob");
  const { json } = await ticket(matchmaking, "ann", ann, "?wait=10s");
  assert.deepEqual([json.status, json.matched?.peer_user_ids], ["MATCHED", ["bob"]]);
  await until(
    "both events are published",
    async () => (await readStream(natsUrl, stream)).length === 2,
  );
  assert.equal(await matchmaking.stop(), 0);
  await deleteStream(natsUrl, stream);
}

type Read = (variable: string) => string | undefined;

async function temporaryFolder() {
  const path = await Deno.makeTempDir({ prefix: "kenri-bundle-" });
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

// Only tests can make programs die at chosen points (tests/faults/crash), not what is deployed.
async function assertNoFaultPoint(folder: string): Promise<void> {
  for await (const { name, isFile } of Deno.readDir(folder)) {
    if (!isFile) continue;
    const text = await Deno.readTextFile(`${folder}/${name}`);
    assert.ok(!text.includes(variable), name);
  }
}

function programIn(folder: string) {
  return {
    cwd: folder,
    arguments: (name: ServiceName, read: Read) => argumentsIn(folder, name, read),
  };
}

// The arguments of the program in the image.
function argumentsIn(folder: string, name: ProgramName, read: Read): string[] {
  return [...entryPoint(), ...imageCommand(name, read, folder)];
}

async function provisionWithBundle(folder: string, settings: Settings): Promise<void> {
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: argumentsIn(folder, "provision", (name) => settings[name]),
    cwd: folder,
    env: settings,
    stdin: "null",
  }).output();
  const said = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes)).join("");
  assert.match(said, /, and its consumer .*: exists with the wanted settings/);
}

// Runs the commands in docs/deploy.md for bundles without the image.
async function migrateWithBundle(folder: string, settings: Settings): Promise<void> {
  const [, commands = ""] = /^cd dist\/bundle\n(.*?)^```/ms.exec(read("docs/deploy.md")) ?? [];
  assert.match(commands, /migrate\.js$/m);
  const { success, stdout, stderr } = await new Deno.Command("sh", {
    args: ["-ec", commands],
    cwd: folder,
    env: settings,
    stdin: "null",
  }).output();
  const said = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes)).join("");
  assert.ok(success, said);
}
