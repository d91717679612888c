import { ApiError } from "../http/errors.ts";
import type { Scope } from "@kenri/proto/scopes.ts";

// The errors of a request that is not admitted, with the challenges of RFC 6750. They never repeat
// a credential.

const challenge = 'Bearer realm="kenri"';

export function noCredential(): ApiError {
  return new ApiError("UNAUTHORIZED", "a credential is required: Authorization: Bearer TOKEN", {
    "WWW-Authenticate": challenge,
  });
}

export function badCredential(message: string): ApiError {
  return new ApiError("UNAUTHORIZED", message, {
    "WWW-Authenticate": `${challenge}, error="invalid_token"`,
  });
}

export function scopeMissing(scope: Scope): ApiError {
  return new ApiError("FORBIDDEN", `this needs a credential with the scope ${scope}`, {
    "WWW-Authenticate": `${challenge}, error="insufficient_scope", scope="${scope}"`,
  });
}

// A browser would ask for a password if there were a challenge.
export function noSession(): ApiError {
  return new ApiError("UNAUTHORIZED", "there is no session, log in first");
}
