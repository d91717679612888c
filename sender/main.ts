import { authenticatorOf } from "@kenri/shared/access/authenticator.ts";
import { runService } from "@kenri/shared/process/service.ts";
import { senderApp } from "./app.ts";
import { readConfig } from "./config.ts";
import { program } from "./program.ts";
import { resolve } from "./resolve.ts";
import { check, send } from "./send.ts";

await runService(program, readConfig, ({ tokens, rules, http }, { log }) => {
  if (rules.allowed.length > 0) {
    log.warn("Addresses are allowed that may be inside: sender.allow-addresses is set");
  }
  if (rules.plainHttp) {
    log.warn("Requests may be sent without encryption: sender.plain-http is true");
  }
  const authenticator = authenticatorOf(
    program.name,
    { tokens, jwt: undefined, sessionKey: undefined },
    log,
  );
  const app = senderApp({
    check: (url) => check(url, rules),
    send: (request) => send(request, { rules, own: http, resolve }),
    authenticator,
    log,
  });
  return { app, loops: [], close: () => Promise.resolve() };
});
