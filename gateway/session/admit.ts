import { noSession } from "@kenri/shared/access/refusals.ts";
import type { Visitors } from "@kenri/shared/access/visitors.ts";
import type { Context } from "hono";
import { apiError } from "../errors.ts";
import type { CheckSession } from "./check.ts";
import { type Cookies, readCookie } from "./cookies.ts";
import { type CsrfTokens, isUnsafe } from "./csrf.ts";
import type { AccountState } from "./known_accounts.ts";
import type { Session, SessionCookies } from "./session.ts";

// Who may use the paths for people: a request with a session that nothing stands against.

export interface Visitor {
  session: Session;
  state: AccountState;
}

declare module "hono" {
  interface ContextVariableMap {
    session?: Visitor;
  }
}

export interface AdmitParts {
  cookies: Cookies;
  sessions: SessionCookies;
  check: CheckSession;
  csrf: CsrfTokens;
  publicUrl: string;
  admitUser: (userId: string) => void; // throws if the user sends too many requests
}

// The pages that need no session.
const publicPaths = new Set([
  ...["/", "/login", "/login/callback", "/logout/backchannel"],
  ...["/page.css", "/page.js", "/cards.js", "/match.js", "/icon.svg"],
]);

export function visitorsOf(parts: AdmitParts): Visitors {
  return {
    publicPaths,
    isTheirs: (path) => path === "/logout" || path.startsWith("/v1/"),
    cookie: parts.cookies.session,
    admit: (context) => admit(context, parts),
  };
}

async function admit(
  context: Context,
  { cookies, sessions, check, csrf, publicUrl, admitUser }: AdmitParts,
): Promise<void> {
  const cookie = readCookie(context, cookies.session);
  const session = cookie === undefined ? undefined : await sessions.open(cookie);
  if (!session) throw noSession();
  admitUser(session.userId); // before the check, which may ask the account service
  const state = await requireStanding(check, session);
  const { raw } = context.req;
  if (isUnsafe(raw.method)) csrf.verify(raw, session, publicUrl);
  context.set("visitor", true);
  context.set("session", { session, state });
}

// Throws if something stands against the session.
export async function requireStanding(
  check: CheckSession,
  session: Session,
): Promise<AccountState> {
  const checked = check(session);
  const { standing, state } = checked instanceof Promise ? await checked : checked;
  if (standing === "ended" || !state) throw noSession();
  if (standing === "inactive") throw apiError("ACCOUNT_INACTIVE", "the account is suspended");
  return state;
}

// Of the handler of a route with the scope "session".
export function visitorOf(context: Context): Visitor {
  const visitor = context.get("session");
  if (!visitor) throw noSession();
  return visitor;
}
