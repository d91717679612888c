import { z } from "@hono/zod-openapi";
import { readFields } from "@kenri/shared/http/body.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { errorAnswer } from "@kenri/shared/http/fields.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import type { Handler } from "hono";
import { jwtVerify } from "jose";
import { apiError, type ErrorCode } from "../errors.ts";
import { issuerSessionOf } from "../session/begin_session.ts";
import { issuerUnavailable, type Verification } from "./issuer.ts";
import type { LoginParts } from "./routes.ts";

// The issuer says that a session there has ended (OpenID Connect Back-Channel Logout 1.0).

export const backchannelRoute: ScopedRoute = {
  method: "post",
  path: "/logout/backchannel",
  scope: "public",
  tags: ["Login"],
  summary: "Back-channel logout",
  description: "The issuer announces here that a user has logged out. Its signed token ends the " +
    "session that it names, or all that the user began at this issuer.",
  request: {
    body: {
      required: true,
      content: {
        "application/x-www-form-urlencoded": { schema: z.object({ logout_token: z.string() }) },
      },
    },
  },
  responses: {
    200: { description: "The sessions have ended" },
    400: errorAnswer("The token is missing or can't be believed", {
      BAD_REQUEST: "logout_token is not a valid logout token of the issuer",
    }),
    408: errorAnswer("The body took too long to arrive"),
    413: errorAnswer("The body is over 16 KiB"),
    415: errorAnswer("The body is not a form"),
    502: errorAnswer<ErrorCode>("The account service failed"),
    503: errorAnswer<ErrorCode>("The issuer or the account service is unavailable", {
      ISSUER_UNAVAILABLE: "the keys of the issuer can't be fetched, try again",
    }),
    504: errorAnswer<ErrorCode>("The account service did not answer in time"),
  },
};

const event = "http://schemas.openid.net/event/backchannel-logout";

const claimsSchema = z.object({
  iss: z.string(),
  sub: z.string().min(1).max(255),
  sid: z.string().min(1).max(255).optional(),
  events: z.object({ [event]: z.object({}) }),
  nonce: z.never().optional(), // it would be an ID token
});

type LogoutClaims = z.output<typeof claimsSchema>;

export function logoutByIssuer({ issuer, account, sessionMs }: LoginParts): Handler {
  return async (context) => {
    const fields = await readFields(context.req.raw);
    const verification = await issuer.verification();
    const { iss, sub, sid } = await verified(fields.get("logout_token") ?? "", verification);
    // An issuer that does not name its sessions in ID tokens can't end one of them here.
    const one = sid === undefined || !verification.namesSessions
      ? undefined
      : { sessionId: issuerSessionOf(iss, sid), expiresAtMs: Date.now() + sessionMs };
    await account.endSessionsOf({ provider: iss, subject: sub }, one);
    return new Response(null);
  };
}

// An announcement is late when it had to be repeated. A token that is older than this could be used by
// somebody who has found it, to end sessions that began since.
const maxAge = "5 minutes";
const leewaySeconds = 30;
const types = new Set(["logout+jwt", "application/logout+jwt", "jwt", undefined]);

async function verified(
  token: string,
  { keys, expected }: Verification,
): Promise<LogoutClaims> {
  try {
    const { payload, protectedHeader } = await jwtVerify(token, keys.find, {
      ...expected,
      maxTokenAge: maxAge,
      clockTolerance: leewaySeconds,
      requiredClaims: ["jti"],
    });
    if (!types.has(protectedHeader.typ?.toLowerCase())) throw invalidToken();
    return claimsSchema.parse(payload);
  } catch (error) {
    // The keys are all that is asked for here.
    const isUnavailable = error instanceof ApiError && error.status === 503;
    throw isUnavailable ? issuerUnavailable() : invalidToken();
  }
}

const invalidToken = () =>
  apiError("BAD_REQUEST", "logout_token is not a valid logout token of the issuer");
