import { addConsole } from "@kenri/shared/console/console.tsx";
import type { OutboxRow } from "@kenri/shared/outbox/outbox_table.ts";
import type { Compared } from "@kenri/shared/outbox/relay.ts";
import { publishWatermarks } from "@kenri/shared/outbox/watermark.ts";
import { retentionLoops } from "@kenri/shared/process/retention.ts";
import { runService } from "@kenri/shared/process/service.ts";
import { closeAll, openAccess, openNats, openTables } from "@kenri/shared/process/service_parts.ts";
import { Handover } from "@kenri/shared/queue/handover.ts";
import { accountApp } from "./app.ts";
import { backlogFigures } from "./backlog.ts";
import { readConfig } from "./config.ts";
import { accountConsole } from "./operators/console.tsx";
import { outbox as outboxTable } from "./outbox.ts";
import { program } from "./program.ts";
import { publishEvents } from "./publish_events.ts";
import { cleanAccount } from "./retention.ts";

await runService(program, readConfig, (config, { log, abandon }) => {
  const { outbox, retention, stream } = config;
  const tables = openTables(program, config, log, backlogFigures);
  const nats = openNats(program, config, log, { needsNats: outbox.enabled });
  const authenticator = openAccess(program, config, log);
  const [{ database }, { link, natsIsAvailable }] = [tables, nats];
  const toRelay = new Handover<OutboxRow>();
  const app = accountApp({
    database,
    toRelay,
    operators: config.debug ? { natsIsAvailable } : undefined,
    checks: { ...tables.checks, ...nats.checks },
    authenticator,
    log,
  });
  const console = config.debug
    ? [addConsole(app, authenticator, accountConsole, config.consolePeers)]
    : [];
  const compared: Compared = {};
  const relay = {
    name: "relay",
    run: (signal: AbortSignal) =>
      publishEvents(
        { database, link, toRelay, compared, log, abandon },
        { ...outbox, stream },
        signal,
      ),
  };
  const watermark = {
    name: "watermark",
    run: (signal: AbortSignal) =>
      publishWatermarks({ database, link, outbox: outboxTable, compared, log }, stream, signal),
  };
  return {
    app,
    loops: [
      ...(outbox.enabled ? [relay, watermark] : []),
      ...retentionLoops(
        retention,
        (signal) => cleanAccount(database, retention, log, signal),
        log,
      ),
      ...console,
    ],
    close: () => closeAll(nats, tables),
  };
});
