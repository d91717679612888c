// The notification service may do what its settings need, and nothing else, also when it is started
// by `deno task notification`.
import assert from "node:assert/strict";
import { call } from "../support/api.ts";
import { eventOf } from "../support/events.ts";
import {
  allSent,
  consumerInfo,
  countsOf,
  freshPlace,
  publishTo,
  settingsOf,
  untilAllAcked,
  untilSent,
} from "../support/notification.ts";
import { all, outcomesFor } from "./permissions.ts";
import { type Settings, startService } from "../../tools/servers/service_process.ts";
import { freshStreamNames } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";
import { root } from "../../tools/root.ts";

const task = { arguments: () => ["task", "--quiet", "notification"], cwd: root };

const settings: Settings = {
  ...settingsOf({
    ...freshStreamNames(),
    serviceUrl: "postgres://kenri:secret@127.0.0.1:15432/notification",
    ownerUrl: "",
    natsUrl: "nats://127.0.0.1:14222",
  }),
  NOTIFICATION_HTTP_PORT: "18081",
};

Deno.test("it may use its own address, its database and its broker, and no other address", async () => {
  const open = [["connect", "127.0.0.1", "15432"], ["connect", "127.0.0.1", "14222"]];
  const closed = [
    ["connect", "127.0.0.1", "15433"],
    ["connect", "localhost", "15432"],
    ["connect", "127.0.0.1", "22"],
    ["connect", "example.org", "443"],
    ["listen", "0.0.0.0", "18081"],
    ["listen", "127.0.0.1", "18080"],
    ["resolve", "example.org"],
    ["fetch", "http://example.org/"],
  ];
  const listen = [["listen", "127.0.0.1", "18081"]];
  assert.deepEqual(await outcomesFor("notification", settings, [...open, ...listen, ...closed]), [
    ...all(open, "ConnectionRefused"),
    ...all(listen, "allowed"),
    ...all(closed, "NotCapable"),
  ]);
});

Deno.test("with only these permissions it receives, delivers, captures and cleans up", async () => {
  await using place = await freshPlace();
  await using service = await startService("notification", {
    ...settingsOf(place),
    NOTIFICATION_DEBUG_ENABLED: "true",
  }, task);
  await until("it consumes", () => consumerInfo(place).then(() => true, () => false));
  await publishTo(place, [eventOf(), eventOf({ version: 2 }), eventOf({ eventId: "no UUID" })]);
  await untilSent(place, 2);
  await untilAllAcked(place);
  await until("it is captured", async () => (await countsOf(place)).notification_nats_dlq === 1);
  assert.deepEqual(await countsOf(place), { ...allSent(2), notification_nats_dlq: 1 });
  for (
    const path of [
      "livez",
      "readyz",
      "metrics",
      "openapi.json",
      "docs",
      "debug/notification/inbox/ann",
    ]
  ) {
    assert.equal((await call(`${service.url}/${path}`)).status, 200, path);
  }
  assert.equal(await service.stop(), 0);
});
