// The subject of points and its consumer, where NATS users may not make them.
import assert from "node:assert/strict";
import type { NatsServer } from "../../tools/servers/nats.ts";
import { call, grant } from "../support/api.ts";
import { freshBoth } from "../support/places.ts";
import { ask } from "../support/entitlement.ts";
import { bodyOf, eventOf } from "../support/events.ts";
import { grantPoints } from "../support/points.ts";
import {
  names,
  provisionOn,
  startGuardedNats,
  startWithUser as start,
  withUser,
} from "./nats_users.ts";
import { inTime, until } from "../../tools/servers/wait.ts";

const { stream, durable } = names;

Deno.test("on the stream of a release without points notification works, and names the command for points", async () => {
  await using nats = await startGuardedNats();
  await provisionBefore(nats);
  await using place = await freshBoth(nats.url);
  await using entitlement = await start("entitlement", place, nats);
  assert.equal(await inTime("it ends", entitlement.exited), 1);
  assert.match(
    entitlement.log.map(({ message }) => message).join("\n"),
    /subjects is \["entitlement.events"\], not .*"points.events".*: run `deno task provision`/,
  );
  await using notification = await start("notification", place, nats);
  const sent = () =>
    ask(place.owners.notification, "select type from notifications where status = 'SENT'");
  await withUser(
    "operator",
    nats,
    (connection) => connection.jetstream().publish(names.subject, bodyOf(eventOf())),
  );
  await until("it is sent", async () => (await sent()).length === 1);
  const named = () =>
    notification.log.filter(({ message }) =>
      /^Events can't be consumed.*run `deno task provision`/.test(message)
    );
  await until("it says what points need", () => named().length === 1);
  const { status, json } = await call(`${notification.url}/readyz`);
  assert.deepEqual([status, /NATS lacks a stream or consumer/.test(json.message)], [503, true]);
  await provisionOn(nats);
  await until("it is ready", async () => (await call(`${notification.url}/readyz`)).status === 200);
  await using again = await start("entitlement", place, nats);
  assert.equal((await grantPoints(again.url)).status, 200);
  await until("the points are sent", async () => (await sent()).length === 2);
  assert.equal(named().length, 1);
});

Deno.test("events of points wait for a permission that is missing, and others do not wait with them", async () => {
  await using nats = await startGuardedNats((users) =>
    users.replace(`"${names.pointsSubject}"\n`, "")
  );
  await provisionOn(nats);
  await using place = await freshBoth(nats.url);
  await using service = await start("entitlement", place, nats);
  for (let i = 0; i < 300; i++) await grantPoints(service.url); // more than the relay takes at once
  await until(
    "it says so",
    () =>
      service.log.some(({ message }) => /^Events wait because NATS does not permit/.test(message)),
  );
  await grant(service.url);
  const rows = () =>
    ask(
      place.owners.entitlement,
      "select distinct event_type, status, attempt_count from outbox_events order by event_type",
    );
  await until(
    "the grant is published",
    async () => JSON.stringify(await rows()).includes("PUBLISHED"),
  );
  const [granted, points, ...others] = await rows() as Record<string, unknown>[];
  assert.deepEqual([granted?.["status"], points?.["event_type"], points?.["attempt_count"]], [
    "PUBLISHED",
    "PointsAdded",
    0,
  ]);
  assert.ok(others.every(({ attempt_count }) => attempt_count === 0));
});

/** The streams and consumers as the command of the release before makes them. */
async function provisionBefore(nats: NatsServer): Promise<void> {
  await provisionOn(nats);
  await withUser("operator", nats, async (connection) => {
    const { streams, consumers } = await connection.jetstreamManager();
    const { config } = await consumers.info(stream, durable);
    delete config.filter_subject;
    await consumers.update(stream, durable, config);
    const made = `${durable}-points`;
    await consumers.delete(stream, made);
    for (const kind of ["max-deliveries", "msg-terminated"]) {
      await streams.delete(`${stream}-${made}-${kind}`);
    }
    await streams.update(stream, { subjects: [names.subject] });
  });
}
