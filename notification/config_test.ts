import assert from "node:assert/strict";
import { SettingsError } from "@kenri/shared/process/settings.ts";
import { readConfig } from "./config.ts";

type Settings = Record<string, string>;

const required: Settings = {
  NOTIFICATION_DATABASE_URL: "postgres://role:secret@127.0.0.1/notification",
  NOTIFICATION_NATS_STREAM: "entitlement-events",
  NOTIFICATION_NATS_SUBJECT: "entitlement.events",
  NOTIFICATION_NATS_DURABLE: "notification-entitlement-consumer",
  NATS_URL: "nats://127.0.0.1",
  HOSTNAME: "host",
};

const configOf = (settings: Settings = {}) =>
  readConfig((name) => ({ ...required, ...settings })[name]);

function problemsOf(settings: Settings): string[] {
  try {
    configOf(settings);
    return [];
  } catch (error) {
    assert.ok(error instanceof SettingsError);
    return error.problems;
  }
}

Deno.test("the defaults are those of the contract", () => {
  const config = configOf();
  assert.deepEqual(config.http, { hostname: "127.0.0.1", port: 8081, requestsAtOnce: 5_000 });
  assert.deepEqual(config.stream, {
    name: "entitlement-events",
    subjects: ["entitlement.events"],
    newSubjects: ["points.events"],
    duplicateWindowMs: 120_000,
    replicas: 1,
  });
  assert.deepEqual(config.consumer, {
    durable: "notification-entitlement-consumer",
    subject: "entitlement.events",
    ackWaitMs: 10_000,
    maxDeliver: 10,
  });
  assert.deepEqual(config.delivery, {
    pollIntervalMs: 1_000,
    batchSize: 200,
    leaseMs: 30_000,
    maxAttempts: 10,
    backoff: { baseMs: 1_000, maxMs: 60_000, minMs: 1_000, jitterMin: 0.5, jitterMax: 1.5 },
    worker: "host",
    sendTimeoutMs: 10_000,
  });
  assert.deepEqual(config.retention, {
    enabled: true,
    intervalMs: 3_600_000,
    days: 30,
    ledgerTtlMs: 400 * 86_400_000,
  });
  assert.deepEqual([config.debug, config.shutdownGraceMs], [false, 10_000]);
  assert.deepEqual([config.predecessorWaitMs, config.failingUserIdPrefix], [30_000, ""]);
});

Deno.test("streams and durables of the advisories are named after stream and durable", () => {
  const [exceeded, terminated] = configOf().advisories;
  const events = "entitlement-events";
  const durable = "notification-entitlement-consumer";
  assert.deepEqual(exceeded?.stream.subjects, [
    `$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.${events}.${durable}`,
  ]);
  assert.equal(exceeded?.stream.name, `${events}-${durable}-max-deliveries`);
  assert.equal(exceeded?.durable, `${events}-${durable}-max-deliveries`);
  assert.equal(terminated?.stream.name, `${events}-${durable}-msg-terminated`);
  const [own] = configOf({
    NOTIFICATION_NATS_ADVISORY_SUBJECT: "a.b",
    NOTIFICATION_NATS_ADVISORY_STREAM: "s",
    NOTIFICATION_NATS_ADVISORY_DURABLE: "d",
  }).advisories;
  assert.deepEqual([own?.stream.subjects, own?.stream.name, own?.durable], [["a.b"], "s", "d"]);
  const [, ownTerminated] = configOf({
    NOTIFICATION_NATS_TERMINATED_ADVISORY_SUBJECT: "c.d",
    NOTIFICATION_NATS_TERMINATED_ADVISORY_STREAM: "t",
    NOTIFICATION_NATS_TERMINATED_ADVISORY_DURABLE: "e",
  }).advisories;
  assert.deepEqual(
    [ownTerminated?.stream.subjects, ownTerminated?.stream.name, ownTerminated?.durable],
    [["c.d"], "t", "e"],
  );
});

Deno.test("points have a consumer of their own on the same stream, named after the other one", () => {
  const { points } = configOf();
  const durable = "notification-entitlement-consumer-points";
  assert.deepEqual(points.stream.subjects, ["entitlement.events", "points.events"]);
  assert.deepEqual(points.consumer, {
    ...{ durable, subject: "points.events", ackWaitMs: 10_000, maxDeliver: 10 },
  });
  assert.deepEqual(
    points.advisories.map(({ stream, durable }) => [stream.name, durable]),
    ["max-deliveries", "msg-terminated"].map((kind) =>
      Array(2).fill(`entitlement-events-${durable}-${kind}`)
    ),
  );
  const own = configOf({
    NOTIFICATION_NATS_POINTS_SUBJECT: "shop.points",
    NOTIFICATION_NATS_POINTS_DURABLE: "points-mail",
  });
  assert.deepEqual(own.stream.newSubjects, ["shop.points"]);
  assert.deepEqual([own.points.consumer.durable, own.points.consumer.subject], [
    "points-mail",
    "shop.points",
  ]);
});

Deno.test("matchmaking is disabled, and has a stream and a consumer of its own", () => {
  const { matchmaking, stream } = configOf();
  const name = "matchmaking-events";
  const durable = "notification-matchmaking-consumer";
  assert.equal(matchmaking.enabled, false);
  assert.deepEqual(matchmaking.stream, {
    ...{ name, subjects: ["matchmaking.events"] },
    ...{ duplicateWindowMs: stream.duplicateWindowMs, replicas: stream.replicas },
  });
  const own = configOf({
    NOTIFICATION_NATS_MAX_DELIVER: "3",
    NOTIFICATION_NATS_ADVISORY_STREAM: "only-of-the-first",
  }).matchmaking;
  assert.deepEqual(own.consumer, {
    ...{ durable, subject: "matchmaking.events", ackWaitMs: 10_000, maxDeliver: 3 },
  });
  assert.deepEqual(
    own.advisories.map(({ stream }) => stream.name),
    ["max-deliveries", "msg-terminated"].map((kind) => `${name}-${durable}-${kind}`),
  );
  assert.deepEqual(
    problemsOf({
      NOTIFICATION_MATCHMAKING_ENABLED: "yes",
      NOTIFICATION_MATCHMAKING_STREAM: required["NOTIFICATION_NATS_STREAM"] ?? "",
      NOTIFICATION_MATCHMAKING_SUBJECT: "points.events",
    }).length,
    3,
  );
});

Deno.test("all missing required settings are named at once", () => {
  const names = Object.keys(required).filter((name) => name !== "HOSTNAME");
  try {
    readConfig(() => undefined);
    assert.fail("it was accepted");
  } catch (error) {
    assert.ok(error instanceof SettingsError);
    assert.deepEqual(
      error.problems.toSorted(),
      names.map((name) => `${name} is required`).toSorted(),
    );
  }
});

Deno.test("failure injection needs to be enabled, and needs a prefix", () => {
  const enabled = "NOTIFICATION_DELIVERY_FAILURE_INJECTION_ENABLED";
  const prefix = "NOTIFICATION_DELIVERY_FAILURE_INJECTION_USER_ID_PREFIX";
  assert.deepEqual(problemsOf({ [prefix]: "fail-" }), [
    `${enabled} must be true for a user-id-prefix to have an effect`,
  ]);
  assert.deepEqual(problemsOf({ [enabled]: "false", [prefix]: "fail-" }), [
    `${enabled} must be true for a user-id-prefix to have an effect`,
  ]);
  assert.deepEqual(problemsOf({ [enabled]: "true" }), [
    `${prefix} must not be empty while failure injection is enabled`,
  ]);
  assert.deepEqual(problemsOf({ [prefix]: "fail-", NATS_URL: "no url" }).length, 2);
  const { failingUserIdPrefix } = configOf({ [enabled]: "true", [prefix]: "fail-" });
  assert.equal(failingUserIdPrefix, "fail-");
});

Deno.test("the events of points have a subject and a durable of their own", () => {
  const same = {
    NOTIFICATION_NATS_POINTS_SUBJECT: required["NOTIFICATION_NATS_SUBJECT"] ?? "",
    NOTIFICATION_NATS_POINTS_DURABLE: required["NOTIFICATION_NATS_DURABLE"] ?? "",
  };
  assert.deepEqual(problemsOf(same), [
    "NOTIFICATION_NATS_POINTS_SUBJECT must not be the same as NOTIFICATION_NATS_SUBJECT",
    "NOTIFICATION_NATS_POINTS_DURABLE must not be the same as NOTIFICATION_NATS_DURABLE",
  ]);
});
