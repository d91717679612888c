import { z } from "@hono/zod-openapi";
import { slotOf } from "@kenri/shared/access/admit.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { errorAnswer } from "@kenri/shared/http/fields.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import type { Context, Handler } from "hono";
import { addressOf } from "../address.ts";
import { apiError, type ErrorCode } from "../errors.ts";
import { loginsBy } from "../metrics.ts";
import { readCookie } from "../session/cookies.ts";
import { identified } from "./claims.ts";
import { LoginRefused } from "./failures.ts";
import { callbackPath, redirectTo } from "./login.ts";
import type { LoginParts } from "./routes.ts";
import { type LoginState, openBrowser, openState } from "./sealed.ts";

// Takes the browser back from the issuer and begins its session.

export const callbackRoute: ScopedRoute = {
  method: "get",
  path: callbackPath,
  scope: "public",
  tags: ["Login"],
  summary: "Take a browser back from the issuer",
  description: "The issuer sends browsers here. Nothing of the url is believed before the issuer " +
    "has confirmed it, and only the browser that began the login can end it.",
  request: {
    query: z.object({
      code: z.string().optional(),
      state: z.string().optional(),
      iss: z.string().optional(),
      error: z.string().optional(),
    }),
  },
  responses: {
    302: { description: "Logged in; or to `/login?error`, and then no session was begun" },
    403: errorAnswer<ErrorCode>("The account is suspended", {
      ACCOUNT_INACTIVE: "the account is suspended",
    }),
    429: errorAnswer("Too many logins from one address"),
    502: errorAnswer<ErrorCode>("The account service failed"),
    503: errorAnswer<ErrorCode>("The issuer or the account service is unavailable", {
      ISSUER_UNAVAILABLE: "nobody can log in right now, try again in a moment",
    }),
    504: errorAnswer<ErrorCode>("The account service did not answer in time"),
  },
};

export function endLogin(parts: LoginParts): Handler {
  const { account, beginSession, rates, trustedProxies, log } = parts;
  return async (context) => {
    rates.callback(addressOf(context, trustedProxies));
    try {
      const { claims, returnTo } = await claimsOf(context, parts);
      const { identity, sid } = identified(claims);
      const user = await account.resolve(identity);
      if (user.account_status !== "ACTIVE") {
        throw apiError("ACCOUNT_INACTIVE", "the account is suspended");
      }
      await endOther(context, user.user_id, parts);
      const cookie = await beginSession(user, identity.provider, sid);
      loginsBy.completed.inc();
      return redirectTo(returnTo, cookie);
    } catch (error) {
      if (!(error instanceof LoginRefused)) throw error;
      loginsBy.refused.inc();
      log.info("A login was refused: {reason}", { reason: error.message });
      return redirectTo("/login?error");
    }
  };
}

// An answer of a request that is still on its way may renew the cookie of the user who was logged in here
// before, and so undo the login of another one.
async function endOther(
  context: Context,
  userId: string,
  { cookies, sessions, account, known }: LoginParts,
): Promise<void> {
  const cookie = readCookie(context, cookies.session);
  const before = cookie === undefined ? undefined : await sessions.open(cookie);
  if (!before || before.userId === userId) return;
  try {
    await account.endSession(before);
  } catch (error) {
    const isGone = error instanceof ApiError && error.code === "ACCOUNT_NOT_FOUND";
    if (!isGone) throw error;
  }
  known.end(before.sessionId, before.expiresAtMs);
}

// The address is made of our own url, because a request may name any host.
async function claimsOf(context: Context, parts: LoginParts) {
  const { issuer, publicUrl } = parts;
  const { search, searchParams } = new URL(context.req.url);
  const sealed = searchParams.get("state") ?? "";
  const { nonce, verifier, return_to } = await stateOf(context, sealed, parts);
  const callback = new URL(callbackPath + search, publicUrl);
  const claims = await issuer.claimsBy(callback, { state: sealed, nonce, verifier });
  return { claims, returnTo: return_to };
}

async function stateOf(
  context: Context,
  sealed: string,
  { seals, cookies }: LoginParts,
): Promise<LoginState> {
  const state = await openState(seals, sealed);
  if (!state) throw new LoginRefused("unknown or expired state");
  const browser = await openBrowser(seals, readCookie(context, cookies.login));
  if (state.browser !== browser) throw new LoginRefused("another browser began it");
  slotOf(context)?.take("unchecked"); // while the issuer is slow, strangers keep their own slots
  return state;
}
