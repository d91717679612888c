import { reasonOf } from "@kenri/shared/process/reason.ts";
import {
  AuthorizationResponseError,
  ClientError,
  ResponseBodyError,
  WWWAuthenticateChallengeError,
} from "openid-client";

// Why a login fails. Either what the browser brought, or what the issuer answered to it, can't be
// believed; then the user can only begin again. Or the issuer can't be asked, and later it can.
//
// The errors of the library contain codes and tokens, so only their kind is ever shown.

export class LoginRefused extends Error {
  override readonly name = "LoginRefused";
}

/** A refusal, or why the issuer can't be asked, in words that contain no secret. */
export function failureOf(error: unknown): LoginRefused | string {
  if (error instanceof LoginRefused) return error;
  if (error instanceof AuthorizationResponseError) return new LoginRefused("the issuer refused");
  if (error instanceof ResponseBodyError) return failureOfCode(error.error, error.status);
  if (error instanceof WWWAuthenticateChallengeError) return refusedClient;
  if (error instanceof ClientError) return failureOfAnswer(error);
  return reasonOf(error);
}

const refusedClient = "it refuses gateway.client-id or gateway.client-secret";

// The issuer's answer to a code, which a browser may have made up.
function failureOfCode(error: string, status: number): LoginRefused | string {
  if (error === "invalid_client" || error === "unauthorized_client") return refusedClient;
  return status < 500 ? new LoginRefused("invalid code") : `its token endpoint answers ${status}`;
}

const refusals: Record<string, string> = {
  OAUTH_INVALID_RESPONSE: "invalid answer or signature",
  OAUTH_JWT_CLAIM_COMPARISON_FAILED: "wrong claim",
  OAUTH_JWT_TIMESTAMP_CHECK_FAILED: "expired token",
  OAUTH_KEY_SELECTION_FAILED: "unknown key",
  OAUTH_UNSUPPORTED_OPERATION: "unsupported answer",
};

function failureOfAnswer({ code = "", message, cause }: ClientError): LoginRefused | string {
  const refusal = refusals[code];
  if (refusal !== undefined) return new LoginRefused(refusal);
  if (cause instanceof Response) return `it answers ${cause.status}`;
  if (cause instanceof Deno.errors.NotCapable) {
    const server = /"([^"]+)"/.exec(cause.message)?.[1];
    return `neither gateway.issuer nor gateway.issuer-servers names ${server}`;
  }
  return code === "" ? reasonOf(cause) : message;
}
