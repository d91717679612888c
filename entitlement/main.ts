import type { OutboxRow } from "@kenri/shared/outbox/outbox_table.ts";
import { addConsole } from "@kenri/shared/console/console.tsx";
import { Handover } from "@kenri/shared/queue/handover.ts";
import { retentionLoops } from "@kenri/shared/process/retention.ts";
import { runService } from "@kenri/shared/process/service.ts";
import { closeAll, openAccess, openNats, openTables } from "@kenri/shared/process/service_parts.ts";
import { entitlementApp } from "./app.ts";
import { backlogFigures } from "./backlog.ts";
import { readConfig } from "./config.ts";
import { entitlementConsole } from "./operators/console.tsx";
import { receiverOver } from "./reconciliation/ask.ts";
import { runReconciliation } from "./reconciliation/run.ts";
import { carryOutReservations } from "./points/carry_out.ts";
import type { ReservationRow } from "./points/reservations.ts";
import { program } from "./program.ts";
import { publishEvents } from "./publish_events.ts";
import { cleanEntitlement } from "./retention.ts";

await runService(program, readConfig, (config, { log, abandon }) => {
  const { outbox, reconcile, reservations, retention, stream } = config;
  const tables = openTables(program, config, log, backlogFigures);
  const nats = openNats(program, config, log, { needsNats: outbox.enabled }); // only the relay connects
  const authenticator = openAccess(program, config, log);
  const [{ database }, { link, natsIsAvailable }] = [tables, nats];
  const toRelay = new Handover<OutboxRow>();
  const toCarryOut = new Handover<ReservationRow>();
  const wakeRelay = toRelay.wake;
  const wakeReservations = toCarryOut.wake;
  const ask = receiverOver(link, stream.subjects[0]);
  const operators = {
    database,
    wakeRelay,
    wakeReservations,
    ask,
    graceSeconds: reconcile.graceSeconds,
    natsIsAvailable,
  };
  const app = entitlementApp(
    {
      database,
      toRelay,
      toCarryOut,
      operators: config.debug ? operators : undefined,
      checks: { ...tables.checks, ...nats.checks },
      authenticator,
      log,
    },
    config,
  );
  const console = config.debug
    ? [addConsole(app, authenticator, entitlementConsole, config.consolePeers)]
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
  const carryOut = {
    name: "reservations",
    run: (signal: AbortSignal) =>
      carryOutReservations({ database, toCarryOut, toRelay, log, abandon }, config, signal),
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
      ...(reservations.enabled ? [carryOut] : []),
      ...retentionLoops(
        retention,
        (signal) => cleanEntitlement(database, retention, log, signal),
        log,
      ),
      ...(outbox.enabled && reconcile.enabled ? [reconciliation] : []),
      ...console,
    ],
    close: () => closeAll(nats, tables),
  };
});
