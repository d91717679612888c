import { runService } from "@kenri/shared/process/service.ts";
import { closeAll, openAccess, openNats } from "@kenri/shared/process/service_parts.ts";
import { gatewayApp } from "./app.ts";
import { readConfig } from "./config.ts";
import { program } from "./program.ts";

await runService(program, readConfig, (config, { log }) => {
  const nats = openNats(program, config, log, { needsNats: false });
  const authenticator = openAccess(program, config, log);
  const app = gatewayApp({ checks: nats.checks, authenticator, log });
  return { app, loops: [], close: () => closeAll(nats) };
});
