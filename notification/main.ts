import { authenticatorOf } from "@kenri/shared/access/authenticator.ts";
import { rateLimited } from "@kenri/shared/access/rate.ts";
import { Handover } from "@kenri/shared/queue/handover.ts";
import { NatsLink } from "@kenri/shared/nats/link.ts";
import { openDatabase, schemaIsCurrent } from "@kenri/shared/postgres/postgres.ts";
import { runRetention } from "@kenri/shared/process/retention.ts";
import {
  collectFromDatabase,
  collectFromStream,
  observePool,
} from "@kenri/shared/telemetry/scrape.ts";
import { runService } from "@kenri/shared/process/service.ts";
import { answerChecks } from "./answer_checks.ts";
import { notificationApp } from "./app.ts";
import { captureAdvisories } from "./dead_letters/capture_advisories.ts";
import { failingFor } from "./channels/failure_injection.ts";
import { logChannel } from "./channels/log_channel.ts";
import { readConfig } from "./config.ts";
import { addNotificationConsole } from "./operators/console.tsx";
import { consumeEvents } from "./consume_events.ts";
import type { NotificationRow } from "./deliveries.ts";
import { deliverNotifications } from "./deliver_notifications.ts";
import { streamFigures, tableFigures } from "./metrics.ts";
import { program } from "./program.ts";
import { cleanNotification } from "./retention.ts";

const schemaVersion = 7; // the newest of migrations/notification

await runService(program, readConfig, (config, { log, abandon }) => {
  const database = openDatabase(config.databaseUrl, "notification", config.databaseTls);
  const link = new NatsLink(config.nats, "notification", log);
  const toDelivery = new Handover<NotificationRow>();
  const channel = config.failingUserIdPrefix === ""
    ? logChannel(log)
    : failingFor(config.failingUserIdPrefix, logChannel(log));
  const authenticator = rateLimited(
    authenticatorOf("notification", config.access, log),
    config.rate,
  );
  const checks = {
    "the database can't be reached or lacks migrations": () =>
      schemaIsCurrent(database, schemaVersion),
    "NATS can't be reached": () => link.connected,
    "NATS lacks a stream or consumer, or has it with other settings": () =>
      !link.connected || link.unprovisioned.size === 0,
  };
  const operators = {
    database,
    link,
    wakeDelivery: toDelivery.wake,
    consumer: { stream: config.stream.name, durable: config.consumer.durable },
    predecessorWaitMs: config.predecessorWaitMs,
  };
  const app = notificationApp({
    operators: config.debug ? operators : undefined,
    checks,
    authenticator,
    log,
  });
  observePool(database);
  collectFromDatabase(() => tableFigures(database), log);
  collectFromStream(() => streamFigures(link, config.stream.name, config.consumer.durable));
  const console = config.debug
    ? [addNotificationConsole(app, authenticator, config.consolePeerUrl)]
    : [];
  const loops = [
    ...console,
    {
      name: "consumer",
      run: (signal: AbortSignal) =>
        consumeEvents({ database, link, toDelivery, log, abandon }, config, signal),
    },
    {
      name: "delivery",
      run: (signal: AbortSignal) =>
        deliverNotifications(
          { database, channel, toDelivery, log, abandon },
          config.delivery,
          signal,
        ),
    },
    {
      name: "checks",
      run: (signal: AbortSignal) => answerChecks({ database, link, log }, config, signal),
    },
    ...config.advisories.map((advisory) => ({
      name: `capture of ${advisory.kind}`,
      run: (signal: AbortSignal) => captureAdvisories({ database, link, log }, advisory, signal),
    })),
  ];
  const retention = {
    name: "retention",
    run: (signal: AbortSignal) =>
      runRetention(
        (until) => cleanNotification(database, config.retention, log, until),
        config.retention.intervalMs,
        log,
        signal,
      ),
  };
  return {
    app,
    loops: config.retention.enabled ? [...loops, retention] : loops,
    close: async () => {
      await link.close();
      await database.end();
    },
  };
});
