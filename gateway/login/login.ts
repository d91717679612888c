import { z } from "@hono/zod-openapi";
import { errorAnswer } from "@kenri/shared/http/fields.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import type { Handler } from "hono";
import { randomNonce, randomPKCECodeVerifier } from "openid-client";
import { addressOf } from "../address.ts";
import { apiError, type ErrorCode } from "../errors.ts";
import { readCookie } from "../session/cookies.ts";
import type { LoginParts } from "./routes.ts";
import { returnToOf } from "./return_to.ts";
import { loginMs, openBrowser, sealBrowser, sealState } from "./sealed.ts";

// Sends a browser to the issuer: authorization code with PKCE.

export const loginRoute: ScopedRoute = {
  method: "get",
  path: "/login",
  scope: "public",
  tags: ["Login"],
  summary: "Log in",
  description: "For browsers. A browser gets errors as pages.",
  request: {
    query: z.object({
      return_to: z.string().optional().openapi({
        description:
          "A path of this site, where the browser returns after the login; `/` by default",
      }),
      error: z.string().optional().openapi({ description: "A login has failed" }),
    }),
  },
  responses: {
    302: { description: "To the issuer; sets the cookie of the login" },
    400: errorAnswer("`return_to` leads elsewhere", {
      BAD_REQUEST: "return_to must be a path of this site, such as /orders",
    }),
    401: errorAnswer<ErrorCode>("With `error`: a login has failed", {
      LOGIN_FAILED: "the login failed, log in again",
    }),
    429: errorAnswer("Too many logins from one address"),
    503: errorAnswer<ErrorCode>("The issuer is unavailable", {
      ISSUER_UNAVAILABLE: "nobody can log in right now, try again in a moment",
    }),
  },
};

export const callbackPath = "/login/callback";

export function beginLogin(
  { issuer, seals, cookies, publicUrl, rates, trustedProxies }: LoginParts,
): Handler {
  return async (context) => {
    const query = new URL(context.req.url).searchParams;
    if (query.has("error")) throw apiError("LOGIN_FAILED", "the login failed, log in again");
    const returnTo = returnToOf(query, publicUrl);
    rates.login(addressOf(context, trustedProxies));
    const browser = await openBrowser(seals, readCookie(context, cookies.login)) ??
      crypto.randomUUID();
    const [nonce, verifier] = [randomNonce(), randomPKCECodeVerifier()];
    const state = await sealState(seals, { nonce, verifier, return_to: returnTo, browser });
    const at = await issuer.loginUrl(publicUrl + callbackPath, { state, nonce, verifier });
    const cookie = cookies.set(cookies.login, await sealBrowser(seals, browser), loginMs);
    return redirectTo(at.href, cookie);
  };
}

export function redirectTo(location: string, cookie?: string): Response {
  const headers = new Headers({ Location: location, "Referrer-Policy": "no-referrer" });
  if (cookie !== undefined) headers.append("Set-Cookie", cookie);
  return new Response(null, { status: 302, headers });
}
