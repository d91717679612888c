import type { OpenAPIHono } from "@hono/zod-openapi";
import { addRoute } from "@kenri/shared/http/route.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import type { AccountClient } from "../account_client.ts";
import type { BeginSession } from "../session/begin_session.ts";
import type { Rates } from "../rate.ts";
import type { Cookies } from "../session/cookies.ts";
import type { KnownAccounts } from "../session/known_accounts.ts";
import type { Seals } from "../session/seal.ts";
import type { SessionCookies } from "../session/session.ts";
import { backchannelRoute, logoutByIssuer } from "./backchannel.ts";
import { callbackRoute, endLogin } from "./callback.ts";
import { counted } from "./counted.ts";
import type { Issuer } from "./issuer.ts";
import { beginLogin, loginRoute } from "./login.ts";
import { withPages } from "./refusal_page.tsx";

export interface LoginParts {
  issuer: Issuer;
  seals: Seals;
  cookies: Cookies;
  account: Pick<AccountClient, "resolve" | "endSession" | "endSessionsOf">;
  sessions: SessionCookies;
  known: KnownAccounts;
  beginSession: BeginSession;
  publicUrl: string;
  sessionMs: number; // how long a session lasts at most
  rates: Pick<Rates, "login" | "callback">;
  trustedProxies: number;
  log: Log;
}

export function addLogin(app: OpenAPIHono, parts: LoginParts): void {
  addRoute(app, loginRoute, withPages(counted(beginLogin(parts)), parts.log));
  addRoute(app, callbackRoute, withPages(counted(endLogin(parts)), parts.log));
  addRoute(app, backchannelRoute, logoutByIssuer(parts));
}
