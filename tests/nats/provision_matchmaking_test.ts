// The stream of matchmaking and its consumer, where NATS users may not make them.
import assert from "node:assert/strict";
import { grant } from "../support/api.ts";
import { ask } from "../support/entitlement.ts";
import {
  matchmakingEventOf,
  matchmakingMessageOf,
  matchmakingSettings,
  publishMatchmaking,
} from "../support/matchmaking_events.ts";
import { publish } from "../support/events.ts";
import { freshBoth } from "../support/places.ts";
import { provision } from "../../tools/provision/provision.ts";
import { usersFile } from "../../tools/provision/users.ts";
import { countRows } from "../../tools/servers/asking.ts";
import { startNats } from "../../tools/servers/nats.ts";
import { until } from "../../tools/servers/wait.ts";
import {
  infoOf,
  names,
  nameSettings,
  provisionConfig,
  provisionOn,
  startGuardedNats,
  startWithUser,
  urlFor,
  withUser,
} from "./nats_users.ts";

const { NOTIFICATION_MATCHMAKING_ENABLED: _, ...disabled } = nameSettings;

Deno.test("notification works without the stream of matchmaking, and names the command for it", async () => {
  await using nats = await startGuardedNats();
  const settings = { ...disabled, NATS_URL: urlFor("provision", nats) };
  await provision(provisionConfig(settings), () => {});
  const made = (await infoOf(nats)).map(({ config }) => config.name).join();
  assert.ok(made.includes(names.stream) && !made.includes("notification-matchmaking"), made);
  await withUser("operator", nats, async (connection) => {
    const { streams } = await connection.jetstreamManager();
    await streams.delete(names.matchmakingStream); // which was made for matchmaking itself
  });

  await using place = await freshBoth(nats.url);
  await using entitlement = await startWithUser("entitlement", place, nats);
  await using notification = await startWithUser("notification", place, nats);
  const sent = () =>
    ask(place.owners.notification, "select type from notifications where status = 'SENT'");
  await grant(entitlement.url);
  await until("it is sent", async () => (await sent()).length === 1);
  const named = () =>
    notification.log.filter(({ message }) =>
      /^Events can't be consumed.*matchmaking.*run `deno task provision`/.test(message)
    );
  await until("it says what matchmaking needs", () => named().length > 0);
  await provisionOn(nats);
  const event = matchmakingMessageOf(matchmakingEventOf());
  await publish(urlFor("operator", nats), "matchmaking.events", [event]);
  await until("the match is sent", async () => (await sent()).length === 2);
  assert.equal(named().length, 1);
});

Deno.test("other names work with the users that the command prints for them", async () => {
  const shop = { stream: "shop", subject: "shop.rights" };
  const settings = { ...nameSettings, ...matchmakingSettings(shop) };
  const config = provisionConfig({ ...settings, NATS_URL: "nats://x" });
  await using nats = await startNats({
    users: usersFile(config).replaceAll(/\$(\w+)_NATS_PASSWORD/g, '"$1 secret"'),
  });
  const url = urlFor("provision", nats);
  await provision(provisionConfig({ ...settings, NATS_URL: url }), () => {});
  await using place = await freshBoth(nats.url);
  await using _service = await startWithUser("notification", place, nats, settings);
  const event = matchmakingMessageOf(matchmakingEventOf());
  await publishMatchmaking({ ...shop, natsUrl: urlFor("operator", nats) }, [event]);
  await until(
    "it is sent",
    async () =>
      await countRows(place.owners.notification, "notifications where status = 'SENT'") === 1,
  );
});
