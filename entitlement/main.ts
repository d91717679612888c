import { authenticatorOf } from "@kenri/shared/access/authenticator.ts";
import { rateLimited } from "@kenri/shared/access/rate.ts";
import { Handover } from "@kenri/shared/queue/handover.ts";
import { NatsLink } from "@kenri/shared/nats/link.ts";
import { openDatabase, schemaIsCurrent } from "@kenri/shared/postgres/postgres.ts";
import { runRetention } from "@kenri/shared/process/retention.ts";
import { collectFromDatabase, observePool } from "@kenri/shared/telemetry/scrape.ts";
import { runService } from "@kenri/shared/process/service.ts";
import { entitlementApp } from "./app.ts";
import { readConfig } from "./config.ts";
import { addEntitlementConsole } from "./operators/console.tsx";
import { outboxFigures } from "./metrics.ts";
import type { OutboxRow } from "./outbox.ts";
import { receiverOver } from "./reconciliation/ask.ts";
import { runReconciliation } from "./reconciliation/run.ts";
import { program } from "./program.ts";
import { runRelay } from "./relay.ts";
import { cleanEntitlement } from "./retention.ts";

const schemaVersion = 8; // the newest of migrations/entitlement

await runService(program, readConfig, (config, { log, abandon }) => {
  const database = openDatabase(config.databaseUrl, "entitlement", config.databaseTls);
  const link = new NatsLink(config.nats, "entitlement", log);
  const toRelay = new Handover<OutboxRow>();
  const ask = receiverOver(link, config.stream.subject);
  const authenticator = rateLimited(
    authenticatorOf("entitlement", config.access, log),
    config.rate,
  );
  const checks = {
    "the database can't be reached or lacks migrations": () =>
      schemaIsCurrent(database, schemaVersion),
    // Without a relay nobody connects.
    "NATS can't be reached": () => link.connected || !config.outbox.enabled,
    "NATS lacks a stream or consumer, or has it with other settings": () =>
      !link.connected || link.unprovisioned.size === 0,
  };
  const operators = {
    database,
    wakeRelay: toRelay.wake,
    ask,
    graceSeconds: config.reconcile.graceSeconds,
    natsIsThere: checks["NATS can't be reached"],
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
  observePool(database);
  collectFromDatabase(() => outboxFigures(database), log);
  const console = config.debug
    ? [addEntitlementConsole(app, authenticator, config.consolePeerUrl)]
    : [];
  const relay = {
    name: "relay",
    run: (signal: AbortSignal) =>
      runRelay({ database, link, toRelay, log, abandon }, {
        ...config.outbox,
        stream: config.stream,
        sealKey: config.sealKeys[0],
      }, signal),
  };
  const retention = {
    name: "retention",
    run: (signal: AbortSignal) =>
      runRetention(
        (until) => cleanEntitlement(database, config.retention, log, until),
        config.retention.intervalMs,
        log,
        signal,
      ),
  };
  const reconciliation = {
    name: "reconciliation",
    run: (signal: AbortSignal) =>
      runReconciliation(
        { database, ask, wakeRelay: toRelay.wake, log },
        config.reconcile,
        signal,
      ),
  };
  return {
    app,
    loops: [
      ...(config.outbox.enabled ? [relay] : []),
      ...(config.retention.enabled ? [retention] : []),
      ...(config.outbox.enabled && config.reconcile.enabled ? [reconciliation] : []),
      ...console,
    ],
    close: async () => {
      await link.close();
      await database.end();
    },
  };
});
