import type { OutboxRow } from "@kenri/shared/outbox/outbox_table.ts";
import { Handover } from "@kenri/shared/queue/handover.ts";
import { retentionLoops } from "@kenri/shared/process/retention.ts";
import { runService } from "@kenri/shared/process/service.ts";
import { openParts } from "@kenri/shared/process/service_parts.ts";
import { entitlementApp } from "./app.ts";
import { backlogFigures } from "./backlog.ts";
import { readConfig } from "./config.ts";
import { addEntitlementConsole } from "./operators/console.tsx";
import { receiverOver } from "./reconciliation/ask.ts";
import { runReconciliation } from "./reconciliation/run.ts";
import { program } from "./program.ts";
import { publishEvents } from "./publish_events.ts";
import { cleanEntitlement } from "./retention.ts";

const schemaVersion = 8; // the newest of migrations/entitlement

await runService(program, readConfig, (config, { log, abandon }) => {
  const { outbox, reconcile, retention, stream } = config;
  const parts = openParts(program.name, config, log, {
    schemaVersion,
    needsNats: outbox.enabled, // only the relay connects
    figures: backlogFigures,
  });
  const { database, link, authenticator, checks, natsIsAvailable, close } = parts;
  const toRelay = new Handover<OutboxRow>();
  const wakeRelay = toRelay.wake;
  const ask = receiverOver(link, stream.subjects[0]);
  const operators = {
    database,
    wakeRelay,
    ask,
    graceSeconds: reconcile.graceSeconds,
    natsIsAvailable,
  };
  const app = entitlementApp(
    {
      database,
      toRelay,
      operators: config.debug ? operators : undefined,
      checks,
      authenticator,
      log,
    },
    config.commit,
  );
  const console = config.debug
    ? [addEntitlementConsole(app, authenticator, config.consolePeerUrl)]
    : [];
  const relay = {
    name: "relay",
    run: (signal: AbortSignal) =>
      publishEvents(
        { database, link, toRelay, log, abandon },
        { ...outbox, stream, sealKey: config.sealKeys[0] },
        signal,
      ),
  };
  const reconciliation = {
    name: "reconciliation",
    run: (signal: AbortSignal) =>
      runReconciliation({ database, ask, wakeRelay, log }, reconcile, signal),
  };
  return {
    app,
    loops: [
      ...(outbox.enabled ? [relay] : []),
      ...retentionLoops(
        retention,
        (signal) => cleanEntitlement(database, retention, log, signal),
        log,
      ),
      ...(outbox.enabled && reconcile.enabled ? [reconciliation] : []),
      ...console,
    ],
    close,
  };
});
