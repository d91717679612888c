// What a process does with wrong settings, and with a NATS url that has an account or encryption.
import assert from "node:assert/strict";
import { startNats } from "../../tools/servers/nats.ts";
import { type Settings, startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { freshDatabase } from "../support/databases.ts";
import { settingsOf } from "../support/entitlement.ts";
import { natsUrl } from "../support/streams.ts";
import { root } from "../../tools/root.ts";

const wrong: Record<string, Settings> = {
  entitlement: {
    ENTITLEMENT_DATABASE_URL: "mysql://kenri:secret@127.0.0.1/entitlement",
    ENTITLEMENT_NATS_STREAM: " ",
    ENTITLEMENT_NATS_SUBJECT: "entitlement.>",
    ENTITLEMENT_HTTP_PORT: "http",
    ENTITLEMENT_OUTBOX_LEASE: "0s",
    ENTITLEMENT_OUTBOX_BATCH_SIZE: "-5",
    ENTITLEMENT_OUTBOX_BACKOFF_JITTER_MIN: "2",
    ENTITLEMENT_POINTS_UNIT: "Points",
    ENTITLEMENT_POINTS_MAX_BALANCE: "9007199254740992",
    ENTITLEMENT_POINTS_SUBJECT: "entitlement.>",
    ENTITLEMENT_RESERVATIONS_MAX_AHEAD: "0d",
    ENTITLEMENT_RESERVATIONS_ENABLED: "yes",
    ENTITLEMENT_RESERVATIONS_BATCH_SIZE: "5001",
    ENTITLEMENT_RESERVATIONS_BACKOFF_JITTER_MIN: "2",
    NATS_URL: "nats:secret",
    SHUTDOWN_GRACE: "10",
  },
  notification: {
    NOTIFICATION_DATABASE_URL: "mysql://kenri:secret@127.0.0.1/notification",
    NOTIFICATION_NATS_STREAM: "a.b",
    NOTIFICATION_NATS_DURABLE: "",
    NOTIFICATION_NATS_POINTS_SUBJECT: "points.*",
    NOTIFICATION_DELIVERY_LEASE: "0s",
    NOTIFICATION_DELIVERY_FAILURE_INJECTION_USER_ID_PREFIX: "fail-",
    NATS_URL: "nats:secret",
  },
  matchmaking: {
    REDIS_URL: "http://:secret@127.0.0.1",
    MATCHMAKING_MODES: "casual,casual",
    MATCHMAKING_TICKET_TTL: "0s",
    MATCHMAKING_TICKETS_PER_USER: "0",
    MATCHMAKING_WORKER_BATCH_SIZE: "1",
    MATCHMAKING_BUCKET: " ",
    MATCHMAKING_DURABLE: "yes",
    MATCHMAKING_NATS_SUBJECT: "matchmaking.>",
    MATCHMAKING_OUTBOX_LEASE: "0s",
    NATS_URL: "nats:secret",
  },
};
const alsoNamed = {
  matchmaking: [],
  entitlement: [],
  notification: [
    "NOTIFICATION_NATS_SUBJECT",
    "NOTIFICATION_DELIVERY_FAILURE_INJECTION_ENABLED",
  ],
};

for (const [service, settings] of Object.entries(wrong)) {
  Deno.test(`the task and ${service} itself report all wrong settings at once, with exit code 1`, async () => {
    const ways = [
      ["task", service],
      ["run", "--allow-env", "--allow-sys", `${service}/main.ts`],
    ];
    for (const args of ways) {
      const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
        args,
        cwd: root,
        env: { ...settings, NO_COLOR: "1" },
      }).output();
      const output = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
      assert.equal(code, 1, output);
      const names = Object.keys(settings).filter((name) => !name.endsWith("PREFIX"));
      for (const name of [...names, ...alsoNamed[service as keyof typeof alsoNamed]]) {
        assert.match(output, new RegExp(`\\b${name} (must|is)`));
      }
      assert.doesNotMatch(output, /secret|Uncaught| {4}at /);
    }
  });
}

Deno.test("the account and the encryption in the NATS url are used and not ignored", async () => {
  await using database = await freshDatabase("entitlement");
  await using guarded = await startNats({
    users: `authorization { users = [{ user: "ken ri", password: "s@:/%" }] }`,
  });
  const settings = settingsOf(database.serviceUrl);
  const address = `127.0.0.1:${guarded.port}`;
  const says = async (url: string, what: RegExp) => {
    await using service = await startService("entitlement", { ...settings, NATS_URL: url });
    await until(`${what}`, () => what.test(JSON.stringify(service.log)));
  };
  for (const at of [address, `localhost:${guarded.port}`]) {
    await says(`nats://ken%20ri:s%40%3A%2F%25@${at}`, /Connected to NATS/);
  }
  await says(`nats://ken%20ri:wrong@${address}`, /can't be reached.*Authorization/);
  await says(natsUrl.replace("nats:", "tls:"), /can't be reached.*the server offers no TLS/);
});
