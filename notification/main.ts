import { addConsole } from "@kenri/shared/console/console.tsx";
import { inboxLoops } from "@kenri/shared/inbox/inbox.ts";
import { Handover } from "@kenri/shared/queue/handover.ts";
import { Wakeup } from "@kenri/shared/process/signals.ts";
import { retentionLoops } from "@kenri/shared/process/retention.ts";
import { runService } from "@kenri/shared/process/service.ts";
import { closeAll, openAccess, openNats, openTables } from "@kenri/shared/process/service_parts.ts";
import { collectFromStream } from "@kenri/shared/telemetry/collected.ts";
import { answerChecks } from "./answer_checks.ts";
import { notificationApp } from "./app.ts";
import { backlogFigures, streamFigures } from "./backlog.ts";
import { failingFor } from "./channels/failure_injection.ts";
import { logChannel } from "./channels/log_channel.ts";
import { readConfig } from "./config.ts";
import { eventInboxes } from "./consume_events.ts";
import type { NotificationRow } from "./deliveries.ts";
import type { OrderRow } from "./orders/orders.ts";
import { orderLoops } from "./orders/loops.ts";
import { openSender } from "./orders/sender_client.ts";
import { deliverNotifications } from "./deliver_notifications.ts";
import { notificationConsole } from "./operators/console.tsx";
import { program } from "./program.ts";
import { cleanNotification } from "./retention.ts";

await runService(program, readConfig, (config, { log, abandon }) => {
  const { retention } = config;
  const tables = openTables(program, config, log, backlogFigures);
  const nats = openNats(program, config, log, { needsNats: true });
  const authenticator = openAccess(program, config, log);
  const [{ database }, { link }] = [tables, nats];
  const toDelivery = new Handover<NotificationRow>();
  const toSend = new Handover<OrderRow>();
  const wakeOrders = () => toSend.wake.trigger();
  const endpointsChanged = new Wakeup();
  const sender = config.sender && openSender(config.sender);
  const inboxes = eventInboxes({ database, toDelivery, wakeOrders }, config);
  collectFromStream(() => streamFigures(link, inboxes));
  const channel = config.failingUserIdPrefix === ""
    ? logChannel
    : failingFor(config.failingUserIdPrefix, logChannel);
  const operators = {
    database,
    link,
    wakeDelivery: toDelivery.wake,
    wakeOrders: toSend.wake,
    inboxes,
  };
  const app = notificationApp({
    database,
    sender,
    toSend,
    wakeEndpoints: endpointsChanged,
    endpoints: config.endpoints,
    operators: config.debug ? operators : undefined,
    checks: { ...tables.checks, ...nats.checks },
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
      ...inboxes.flatMap((inbox) => inboxLoops({ link, log, abandon }, inbox)),
      {
        name: "delivery",
        run: (signal: AbortSignal) =>
          deliverNotifications(
            { database, channel, toDelivery, log, abandon },
            config.delivery,
            signal,
          ),
      },
      ...(sender && config.orders.enabled
        ? orderLoops({ database, sender, toSend, endpointsChanged, log, abandon }, config)
        : []),
      {
        name: "checks",
        run: (signal: AbortSignal) =>
          answerChecks({ database, link, log }, { inboxes, retention }, signal),
      },
      ...retentionLoops(
        retention,
        (signal) => cleanNotification(database, retention, log, signal),
        log,
      ),
    ],
    close: () => closeAll(nats, tables),
  };
});
