// One command starts everything, leaves no process behind, and reports problems in clear sentences.
import { makeDisk } from "../../tools/chaos/disk.ts";
import { plantedPassword } from "../../tools/planted.ts";
import assert from "node:assert/strict";
import { call, grant, list } from "../support/api.ts";
import { dropDatabase, dropRole, uniqueName, urlOf } from "../support/databases.ts";
import { dataFolder, type Dev, processesOf, startDev } from "./dev.ts";
import { freshRedis } from "../support/redis.ts";
import { deleteStream, natsUrl } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";

// The test finds remaining processes in /proc.
const ignore = Deno.build.os !== "linux";

async function untilSent({ notification }: Dev, user: string): Promise<void> {
  await until("it arrives", async () => {
    const { json } = await call(`${notification}/debug/notification/inbox/${user}`);
    return json.notifications[0]?.status === "SENT";
  });
}

/** What the page of webhooks shows of an event. */
async function webhookOf({ receiver }: Dev, id: string): Promise<string | undefined> {
  const page = await (await fetch(receiver)).text();
  return page.split("<tr>").find((row) => row.includes(`>${id}<`));
}

async function untilVerified(dev: Dev, user: string): Promise<void> {
  await until("the page shows the webhook as verified", async () => {
    const { json } = await call(`${dev.notification}/debug/notification/inbox/${user}`);
    const id = String(json.notifications[0]?.notification_id);
    return (await webhookOf(dev, id))?.includes(">verified<") ?? false;
  });
}

Deno.test({
  name: "data is there again after Ctrl-C, which leaves no process behind",
  ignore,
  fn: async () => {
    await using folder = await dataFolder();
    let secrets = "";
    {
      await using dev = startDev(folder);
      await dev.ready();
      assert.ok(dev.output.text.includes(`curl ${dev.entitlement}/v1/entitlements/grants`));
      assert.equal((await grant(dev.entitlement)).status, 200);
      await untilSent(dev, "ann");
      await untilVerified(dev, "ann");
      assert.match(dev.output.text, new RegExp(`^ +${dev.gateway}$`, "m"));
      const { json } = await call(`${dev.issuer}/.well-known/openid-configuration`);
      assert.equal(json.issuer, dev.issuer);
      assert.match(dev.output.text, /^\d\d:\d\d:\d\d\.\d{3} notification .*EntitlementGranted/m);

      await using second = startDev(folder);
      assert.equal(await second.exited, 1);
      assert.match(second.output.text, /^The data in ".*" is in use by another `deno task dev`/m);

      secrets = await Deno.readTextFile(`${folder.path}/secrets.json`);
      await dev.pressCtrlC();
      // The exit code is that of the task, which was interrupted.
      await dev.exited;
      await until("all have ended", async () => (await processesOf(folder)).length === 0);
      assert.doesNotMatch(dev.output.text, /error|ended with code|Uncaught/i);
    }
    await using again = startDev(folder);
    await again.ready();
    assert.equal((await list(again.entitlement, "ann")).json.entitlements.length, 1);
    assert.equal((await call(`${again.notification}/v1/endpoints`)).json.endpoints.length, 1);
    assert.equal((await grant(again.entitlement, { user_id: "bob" })).status, 200);
    await untilVerified(again, "bob");
    const { mode } = await Deno.stat(`${folder.path}/secrets.json`);
    assert.equal((mode ?? 0) & 0o077, 0);
    assert.ok(await Deno.readTextFile(`${folder.path}/secrets.json`) === secrets, "They were kept");
    const pid = Number(
      (await Deno.readTextFile(`${folder.path}/postgres/postmaster.pid`))
        .split("\n")[0],
    );
    Deno.kill(pid, "SIGKILL");
    assert.equal(await again.exited, 1);
    assert.match(again.output.text, /^PostgreSQL ended by itself with code 137; start again/m);
    await until("all have ended", async () => (await processesOf(folder)).length === 0);
  },
});

Deno.test({
  name: "--fresh begins without data, and nothing survives a killed task",
  ignore,
  fn: async () => {
    await using folder = await dataFolder();
    {
      await using dev = startDev(folder);
      await dev.ready();
      assert.equal((await grant(dev.entitlement)).status, 200);
      Deno.kill(dev.pid, "SIGKILL");
      await until("all have ended", async () => (await processesOf(folder)).length === 0);
    }
    await using dev = startDev(folder, {}, ["--fresh"]);
    await dev.ready();
    assert.deepEqual((await list(dev.entitlement, "ann")).json.entitlements, []);
    Deno.kill(dev.pid, "SIGTERM");
    await dev.exited;
    await until("all have ended", async () => (await processesOf(folder)).length === 0);
  },
});

Deno.test({
  name: "a full disk is reported with what to do, and nothing is left running",
  ignore: ignore || Deno.uid() !== 0, // only root can mount a small one
  fn: async () => {
    await using disk = await makeDisk("dev");
    if (!disk.canBeFull) return;
    // A folder below the disk, because the disk's own helper is not a process that has to end.
    const folder = { path: `${disk.path}/data`, [Symbol.asyncDispose]: () => Promise.resolve() };
    await disk.fill();
    await using dev = startDev(folder);
    assert.equal(await dev.exited, 1, dev.output.text);
    assert.match(
      dev.output.text,
      /^The disk is full: .* set KENRI_DATA to a folder on another disk$/m,
    );
    assert.doesNotMatch(dev.output.text, /Uncaught|^ +at /m);
    await disk.empty();
    await using again = startDev(folder);
    await again.ready();
  },
});

Deno.test({
  name: "given servers are used, and none are started beside them",
  ignore,
  fn: async () => {
    await using folder = await dataFolder();
    await using redis = await freshRedis();
    const database = uniqueName("dev");
    const stream = uniqueName("dev");
    const url = urlOf({ database, user: database, password: plantedPassword });
    {
      await using dev = startDev(folder, {
        NATS_URL: natsUrl,
        REDIS_URL: redis.url,
        ACCOUNT_DATABASE_URL: url.replaceAll(database, `${database}_a`),
        ACCOUNT_MIGRATION_DATABASE_URL: urlOf({ database: `${database}_a` }),
        ACCOUNT_NATS_STREAM: `${stream}_a`,
        ACCOUNT_NATS_SUBJECT: `${stream}_a.events`,
        GATEWAY_NATS_STREAM: `${stream}_a`,
        GATEWAY_NATS_SUBJECT: `${stream}_a.events`,
        ENTITLEMENT_DATABASE_URL: url,
        ENTITLEMENT_MIGRATION_DATABASE_URL: urlOf({ database }),
        ENTITLEMENT_NATS_STREAM: stream,
        ENTITLEMENT_NATS_SUBJECT: `${stream}.events`,
        MATCHMAKING_NATS_STREAM: `${stream}_m`,
        MATCHMAKING_NATS_SUBJECT: `${stream}_m.events`,
        NOTIFICATION_DATABASE_URL: url.replaceAll(database, `${database}_n`),
        NOTIFICATION_MIGRATION_DATABASE_URL: urlOf({ database: `${database}_n` }),
        NOTIFICATION_NATS_STREAM: stream,
        NOTIFICATION_NATS_SUBJECT: `${stream}.events`,
      });
      await dev.ready();
      assert.equal((await grant(dev.entitlement)).status, 200);
      await untilSent(dev, "ann");
      assert.deepEqual(await Array.fromAsync(Deno.readDir(folder.path)), []);
      await dev.pressCtrlC();
      await dev.exited;
    }
    for (const name of [database, `${database}_a`, `${database}_n`]) {
      await dropDatabase(name);
      await dropRole(name);
    }
    for (const name of [stream, `${stream}_a`, `${stream}_m`]) await deleteStream(natsUrl, name);
  },
});

Deno.test({
  name: "each problem that prevents a start is reported in a sentence, before anything is started",
  ignore,
  fn: async () => {
    await using folder = await dataFolder();
    using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = listener.addr as Deno.NetAddr;
    const cases: [Dev, RegExp][] = [
      [
        startDev(folder, { NOTIFICATION_HTTP_PORT: `${port}` }),
        new RegExp(`^Port ${port} of 127.0.0.1 is in use.* with NOTIFICATION_HTTP_PORT$`, "m"),
      ],
      [
        startDev(folder, { KENRI_ISSUER_PORT: `${port}` }),
        new RegExp(`^Port ${port} of .* another port for the issuer with KENRI_ISSUER_PORT$`, "m"),
      ],
      [
        startDev(folder, { ENTITLEMENT_OUTBOX_LEASE: "soon", NATS_URL: "here" }),
        /^ENTITLEMENT_OUTBOX_LEASE must be a duration.*\nNATS_URL must be urls/m,
      ],
      [startDev(folder, {}, ["--frsh"]), /^There is no argument "--frsh", only --fresh$/m],
      [
        startDev({ ...folder, path: "/proc/nowhere" }),
        /^No data can be kept in "\/proc\/nowhere" \(.*\): set KENRI_DATA to a folder that can be written$/m,
      ],
    ];
    const home = await Deno.makeTempDir({ prefix: "kenri-home-" });
    if (Deno.uid() === 0) {
      await Deno.chmod(home, 0o700);
      const dev = startDev({ ...folder, path: home });
      cases.push([dev, /^PostgreSQL does not run as root, .* set KENRI_DATA to one/m]);
    }
    for (const [dev, sentence] of cases) {
      assert.equal(await dev.exited, 1, dev.output.text);
      assert.match(dev.output.text, sentence);
      assert.doesNotMatch(dev.output.text, /Uncaught|^ +at /m);
    }
    await Deno.remove(home, { recursive: true });
    assert.deepEqual(await Array.fromAsync(Deno.readDir(folder.path)), []);
  },
});
