import { addConsole } from "@kenri/shared/console/console.tsx";
import { Handover } from "@kenri/shared/queue/handover.ts";
import { retentionLoops } from "@kenri/shared/process/retention.ts";
import { runService } from "@kenri/shared/process/service.ts";
import { openParts } from "@kenri/shared/process/service_parts.ts";
import { collectFromStream } from "@kenri/shared/telemetry/collected.ts";
import { answerChecks } from "./answer_checks.ts";
import { notificationApp } from "./app.ts";
import { backlogFigures, streamFigures } from "./backlog.ts";
import { captureAdvisories } from "./dead_letters/capture_advisories.ts";
import { failingFor } from "./channels/failure_injection.ts";
import { logChannel } from "./channels/log_channel.ts";
import { readConfig } from "./config.ts";
import { notificationConsole } from "./operators/console.tsx";
import { consumeEvents } from "./consume_events.ts";
import type { NotificationRow } from "./deliveries.ts";
import { deliverNotifications } from "./deliver_notifications.ts";
import { program } from "./program.ts";
import { cleanNotification } from "./retention.ts";

const schemaVersion = 7; // the newest of migrations/notification

await runService(program, readConfig, (config, { log, abandon }) => {
  const { retention } = config;
  const parts = openParts(program.name, config, log, {
    schemaVersion,
    needsNats: true,
    figures: backlogFigures,
  });
  const { database, link, authenticator, checks, close } = parts;
  const consumer = { stream: config.stream.name, durable: config.consumer.durable };
  collectFromStream(() => streamFigures(link, consumer));
  const toDelivery = new Handover<NotificationRow>();
  const channel = config.failingUserIdPrefix === ""
    ? logChannel(log)
    : failingFor(config.failingUserIdPrefix, logChannel(log));
  const operators = {
    database,
    link,
    wakeDelivery: toDelivery.wake,
    consumer,
    predecessorWaitMs: config.predecessorWaitMs,
  };
  const app = notificationApp({
    operators: config.debug ? operators : undefined,
    checks,
    authenticator,
    log,
  });
  const console = config.debug
    ? [addConsole(app, authenticator, notificationConsole, config.consolePeers)]
    : [];
  return {
    app,
    loops: [
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
      ...retentionLoops(
        retention,
        (signal) => cleanNotification(database, retention, log, signal),
        log,
      ),
    ],
    close,
  };
});
