import { runService } from "@kenri/shared/process/service.ts";
import { closeAll, openAccess, openNats } from "@kenri/shared/process/service_parts.ts";
import { accountClient } from "./account_client.ts";
import { gatewayApp } from "./app.ts";
import { readConfig } from "./config.ts";
import { openDependencies } from "./dependencies.ts";
import { Issuer } from "./login/issuer.ts";
import { observeKnown } from "./metrics.ts";
import { program } from "./program.ts";
import { ratesOf } from "./rate.ts";
import { sessionBeginner } from "./session/begin_session.ts";
import { sessionCheck } from "./session/check.ts";
import { cookiesOf } from "./session/cookies.ts";
import { CsrfTokens } from "./session/csrf.ts";
import { accountFeed } from "./session/feed.ts";
import { KnownAccounts } from "./session/known_accounts.ts";
import { Seals } from "./session/seal.ts";
import { SessionCookies } from "./session/session.ts";

await runService(program, readConfig, (config, { log, stop }) => {
  const { publicUrl, session: options } = config;
  const nats = openNats(program, config, log, { needsNats: false });
  const dependencies = openDependencies(config, log);
  const account = accountClient(dependencies.account);
  const seals = new Seals(options.keys);
  const cookies = cookiesOf(publicUrl);
  const sessions = new SessionCookies(seals, options);
  const known = new KnownAccounts(options);
  const feed = accountFeed({ link: nats.link, log, known, account }, config.feed);
  if (!publicUrl.startsWith("https:")) {
    log.warn("Cookies are not marked as secure, because gateway.public-url begins with http://");
  }
  const rates = ratesOf(config.limits);
  observeKnown(feed, known);
  const { stalenessMs } = options;
  const operators = { natsIsAvailable: () => nats.link.connected, feed, known, stalenessMs };
  const app = gatewayApp({
    dependencies,
    stop,
    modes: config.modes,
    operators: config.debug ? operators : undefined,
    checks: nats.checks,
    authenticator: openAccess(program, config, log),
    log,
    cookies,
    sessions,
    check: sessionCheck({ feed, known, account, stalenessMs }),
    csrf: new CsrfTokens(options.keys),
    publicUrl,
    admitUser: rates.user,
    account,
    known,
    login: {
      ...{ issuer: new Issuer(config.issuer, log), seals, cookies, account, publicUrl, rates, log },
      ...{ sessions, known },
      beginSession: sessionBeginner({ cookies, sessions, options }),
      sessionMs: options.ttlMs,
      trustedProxies: config.trustedProxies,
    },
  });
  return {
    app,
    loops: [{ name: "account events", run: (signal) => feed.run(signal) }],
    close: () => closeAll(nats),
  };
});
