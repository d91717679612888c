// deno task provision makes the streams and consumers; services without that permission verify them.
import assert from "node:assert/strict";
import type { ConsumerConfig, StreamConfig } from "nats";
import { usersFile } from "../../tools/provision/users.ts";
import { type NatsServer, startNats } from "../../tools/servers/nats.ts";
import { call, grant } from "../support/api.ts";
import { freshBoth } from "../support/places.ts";
import { ask } from "../support/entitlement.ts";
import {
  infoOf,
  names,
  nameSettings,
  provisionConfig,
  provisionOn,
  startGuardedNats,
  startWithUser as start,
  urlFor,
  withUser,
} from "./nats_users.ts";
import { type Settings, startService } from "../../tools/servers/service_process.ts";
import { inTime, until } from "../../tools/servers/wait.ts";
import { root } from "../../tools/root.ts";

const { stream, durable, accountStream, matchmakingStream, matchmakingDurable } = names;
const advisories = `${stream}-${durable}-max-deliveries`;

async function run(settings: Settings): Promise<{ code: number; said: string }> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["task", "--quiet", "provision"],
    cwd: root,
    env: { ...settings, NO_COLOR: "1" },
  }).output();
  return { code, said: [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes)).join("") };
}

const change = (nats: NatsServer, config: Partial<StreamConfig>, name = stream) =>
  withUser("operator", nats, async (connection) => {
    const { streams } = await connection.jetstreamManager();
    await streams.update(name, config);
  });

Deno.test("the command makes all streams and consumers, and changes nothing if they exist", async () => {
  await using nats = await startGuardedNats();
  const settings = { ...nameSettings, NATS_PROVISION_URL: urlFor("provision", nats) };
  const first = await run(settings);
  assert.equal(first.code, 0, first.said);
  const made = await infoOf(nats);
  const consumers = [durable, `${durable}-points`].map((name) => `${stream}-${name}`);
  const ofConsumers = [...consumers, `${matchmakingStream}-${matchmakingDurable}`].flatMap(
    (name) => ["max-deliveries", "msg-terminated"].map((kind) => `${name}-${kind}`),
  );
  assert.deepEqual(
    Object.fromEntries(made.map(({ config, consumers }) => [config.name, consumers.length])),
    {
      [accountStream]: 0,
      ...{ [stream]: 2, [matchmakingStream]: 1 },
      ...Object.fromEntries(ofConsumers.map((name) => [name, 1])),
    },
  );
  assert.deepEqual(await run(settings), first);
  assert.deepEqual(await infoOf(nats), made);
  assert.ok(!first.said.includes("secret"), first.said);
});

Deno.test("the command updates what differs from the settings", async () => {
  await using nats = await startGuardedNats();
  await provisionOn(nats);
  const made = await infoOf(nats);
  await change(nats, { max_msgs: 1, max_msgs_per_subject: 1, max_bytes: 1e6 });
  await provisionOn(nats);
  const [one] = made.filter(({ config }) => config.name === stream);
  if (one) one.config.max_bytes = 1e6; // how much room there is, is the operator's to say
  assert.deepEqual(await infoOf(nats), made);
});

Deno.test("a missing permission, a wrong password and contradictory settings end the command with a reason", async () => {
  await using nats = await startGuardedNats((users) =>
    users.replaceAll(/"\$JS\.API\.STREAM\.CREATE\.[\w-]+"\n/g, "")
  );
  const url = urlFor("provision", nats);
  const attempts: [Settings, RegExp][] = [
    [
      { NATS_PROVISION_URL: url },
      /^Stream ".*" is missing, and the user in NATS_PROVISION_URL may not change that\n$/,
    ],
    [{ NATS_PROVISION_URL: urlFor("notification", nats) }, /^.*Permissions Violation.*\n$/],
    [{ NATS_PROVISION_URL: url.replace("PROVISION", "wrong") }, /Authorization/i],
    [
      { NATS_PROVISION_URL: url, NOTIFICATION_NATS_DUPLICATE_WINDOW: "5m" },
      /NOTIFICATION_NATS_DUPLICATE_WINDOW must be that of ENTITLEMENT_NATS_DUPLICATE_WINDOW/,
    ],
    [
      { NATS_PROVISION_URL: url, ENTITLEMENT_POINTS_SUBJECT: "shop.points" },
      /want stream ".*" with different subjects: .*, shop.points; entitlement.events, points.events/,
    ],
    [{}, /NATS_PROVISION_URL is required, or NATS_URL/],
  ];
  for (const [settings, reason] of attempts) {
    const { code, said } = await run({ ...nameSettings, ...settings });
    assert.equal(code, 1, said);
    assert.match(said, reason);
  }
  assert.deepEqual(await infoOf(nats), []);
});

for (const name of ["entitlement", "notification"] as const) {
  Deno.test(`${name} does not start without its stream, and names the command to run`, async () => {
    await using nats = await startGuardedNats();
    await using place = await freshBoth(nats.url);
    await using service = await start(name, place, nats);
    assert.equal(await inTime("it ends", service.exited), 1);
    assert.match(
      JSON.stringify(service.log),
      /Stream .* is missing, and NATS does not permit .*: run `deno task provision`/,
    );
    assert.deepEqual(await infoOf(nats), []);
  });
}

const harms: ["entitlement" | "notification", string, Partial<StreamConfig>, RegExp][] = [
  ["entitlement", stream, { max_msgs: 1 }, /max_msgs is 1, not -1/],
  [
    "notification",
    stream,
    { max_age: 1e9, duplicate_window: 1e9 },
    /duplicate_window is 1000000000, not 120000000000, max_age is 1000000000, not 604800000000000/,
  ],
  ["entitlement", stream, { no_ack: true }, /no_ack is true, not unset/],
  ["entitlement", stream, { allow_rollup_hdrs: true }, /allow_rollup_hdrs is true, not unset/],
  ["notification", advisories, { max_msgs_per_subject: 1 }, /max_msgs_per_subject is 1, not -1/],
  ["notification", advisories, { sources: [{ name: stream }] }, /sources is .*, not unset/],
];
for (const [name, which, config, words] of harms) {
  const [setting = ""] = Object.keys(config);
  Deno.test(`${name} does not start while ${setting} of ${which} differs`, async () => {
    await using nats = await startGuardedNats();
    await provisionOn(nats);
    await change(nats, config, which);
    await using place = await freshBoth(nats.url);
    await using service = await start(name, place, nats);
    assert.equal(await inTime("it ends", service.exited), 1);
    const said = service.log.map(({ message }) => message).join("\n");
    assert.match(said, words);
    assert.match(said, /run `deno task provision`/);
    await provisionOn(nats);
    await using again = await start(name, place, nats);
    await until("it is ready", async () => (await call(`${again.url}/readyz`)).status === 200);
  });
}

Deno.test("a service does not start on a stream that republishes elsewhere", async () => {
  await using nats = await startGuardedNats();
  await provisionOn(nats);
  await withUser("operator", nats, async (connection) => {
    const { streams } = await connection.jetstreamManager();
    const { config } = await streams.info(stream);
    await streams.delete(stream);
    await streams.add({ ...config, republish: { src: ">", dest: "stolen.>" } });
  });
  await using place = await freshBoth(nats.url);
  await using service = await start("entitlement", place, nats);
  assert.equal(await inTime("it ends", service.exited), 1);
  const said = service.log.map(({ message }) => message).join("\n");
  assert.match(said, /republish is \{.*stolen.*, not unset/);
});

Deno.test("the notification service does not start while its consumer is missing or has other settings", async () => {
  await using nats = await startGuardedNats();
  await using place = await freshBoth(nats.url);
  await provisionOn(nats);
  const damages: [Partial<ConsumerConfig> | undefined, RegExp][] = [
    [undefined, /Consumer ".*" is missing, and NATS does not permit/],
    [{ max_deliver: 1 }, /Consumer ".*" differs from the settings: max_deliver is 1, not 10/],
    [{ headers_only: true }, /headers_only is true, not unset/],
  ];
  for (const [config, words] of damages) {
    await withUser("operator", nats, async (connection) => {
      const { consumers } = await connection.jetstreamManager();
      if (config) await consumers.update(stream, durable, config);
      else await consumers.delete(stream, durable);
    });
    await using service = await start("notification", place, nats);
    assert.equal(await inTime("it ends", service.exited), 1);
    assert.match(service.log.map(({ message }) => message).join("\n"), words);
    await provisionOn(nats);
  }
});

Deno.test("a running service waits while its stream differs, and logs that once", async () => {
  await using nats = await startGuardedNats();
  await provisionOn(nats);
  await using place = await freshBoth(nats.url);
  await using service = await start("entitlement", place, nats);
  const ready = async () => (await call(`${service.url}/readyz`)).status;
  await until("it is ready", async () => await ready() === 200);
  await change(nats, { max_msgs: 5 });
  await nats.stop();
  await nats.start();
  await until(
    "it says so",
    () => service.log.some(({ message }) => message.includes("max_msgs is 5, not -1")),
  );
  assert.equal((await grant(service.url)).status, 200, "changes are taken all the while");
  assert.equal(await ready(), 503);
  const waits = () => ask(place.owners.entitlement, "select status from outbox_events");
  assert.deepEqual(await waits(), [{ status: "PENDING" }]);
  await provisionOn(nats);
  await until("it is published", async () => JSON.stringify(await waits()).includes("PUBLISHED"));
  assert.equal(
    service.log.filter(({ message }) => message.includes("max_msgs is 5")).length,
    1,
  );
  assert.equal(await service.stop(), 0);
});

Deno.test("other names work with the users that the command prints for them", async () => {
  const settings: Settings = {
    ENTITLEMENT_NATS_STREAM: "rights",
    ENTITLEMENT_NATS_SUBJECT: "shop.rights",
    ENTITLEMENT_POINTS_SUBJECT: "shop.points",
    NOTIFICATION_NATS_STREAM: "rights",
    NOTIFICATION_NATS_SUBJECT: "shop.rights",
    NOTIFICATION_NATS_POINTS_SUBJECT: "shop.points",
    NOTIFICATION_NATS_DURABLE: "mail",
    NOTIFICATION_NATS_ADVISORY_STREAM: "given-up",
    NOTIFICATION_NATS_ADVISORY_DURABLE: "keeper",
  };
  const config = provisionConfig({ ...settings, NATS_URL: "nats://x" });
  await using nats = await startNats({
    users: usersFile(config).replaceAll(/\$(\w+)_NATS_PASSWORD/g, '"$1 secret"'),
  });
  const url = urlFor("provision", nats);
  const { code, said } = await run({ ...settings, NATS_PROVISION_URL: url });
  assert.equal(code, 0, said);
  await using place = await freshBoth(nats.url);
  const startNamed = (name: "entitlement" | "notification") =>
    startService(name, { ...place.settings, ...settings, NATS_URL: urlFor(name, nats) });
  await using entitlement = await startNamed("entitlement");
  await using _notification = await startNamed("notification");
  await grant(entitlement.url);
  await until("it is sent", async () => {
    const sent = "select from notifications where status = 'SENT'";
    return (await ask(place.owners.notification, sent)).length === 1;
  });
});
