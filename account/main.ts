import type { OutboxRow } from "@kenri/shared/outbox/outbox_table.ts";
import { publishWatermarks } from "@kenri/shared/outbox/watermark.ts";
import { retentionLoops } from "@kenri/shared/process/retention.ts";
import { runService } from "@kenri/shared/process/service.ts";
import { closeAll, openAccess, openNats, openTables } from "@kenri/shared/process/service_parts.ts";
import { Handover } from "@kenri/shared/queue/handover.ts";
import { accountApp } from "./app.ts";
import { backlogFigures } from "./backlog.ts";
import { readConfig } from "./config.ts";
import { outbox as outboxTable } from "./outbox.ts";
import { program } from "./program.ts";
import { publishEvents } from "./publish_events.ts";
import { cleanAccount } from "./retention.ts";

await runService(program, readConfig, (config, { log, abandon }) => {
  const { outbox, retention, stream } = config;
  const tables = openTables(program, config, log, backlogFigures);
  const nats = openNats(program, config, log, { needsNats: outbox.enabled });
  const authenticator = openAccess(program, config, log);
  const [{ database }, { link }] = [tables, nats];
  const toRelay = new Handover<OutboxRow>();
  const app = accountApp({
    database,
    toRelay,
    checks: { ...tables.checks, ...nats.checks },
    authenticator,
    log,
  });
  const relay = {
    name: "relay",
    run: (signal: AbortSignal) =>
      publishEvents({ database, link, toRelay, log, abandon }, { ...outbox, stream }, signal),
  };
  const watermark = {
    name: "watermark",
    run: (signal: AbortSignal) =>
      publishWatermarks({ database, link, outbox: outboxTable, log }, stream, signal),
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
    ],
    close: () => closeAll(nats, tables),
  };
});
