import { errors, type JWTPayload, jwtVerify, type JWTVerifyResult } from "jose";
import { ApiError } from "../http/errors.ts";
import { scopes } from "@kenri/proto/scopes.ts";
import type { Caller } from "./caller.ts";
import type { IssuerKeys } from "./issuer_keys.ts";
import { badCredential } from "./refusals.ts";

// Verifies access tokens that an issuer has signed: JWTs (RFC 7519) with the claims of RFC 9068.

export interface JwtOptions {
  issuer: string;
  audience: string;
  jwksUrl: string;
  algorithms: string[];
  leewaySeconds: number;
}

export async function verifyJwt(
  token: string,
  { issuer, audience, algorithms, leewaySeconds }: JwtOptions,
  keys: IssuerKeys,
): Promise<Required<Caller>> {
  const { payload: claims, protectedHeader } = await verified(() =>
    jwtVerify(token, keys.find, {
      issuer,
      audience,
      algorithms,
      clockTolerance: leewaySeconds,
      requiredClaims: ["exp"],
    })
  );
  refuseOtherKinds(protectedHeader.typ, claims);
  return {
    name: nameOf(claims),
    scopes: scopesOf(claims),
    expiresAtMs: ((claims.exp ?? 0) + leewaySeconds) * 1_000,
  };
}

// RFC 9068 demands at+jwt. Many issuers write JWT, or no type.
const accessTypes = new Set(["at+jwt", "application/at+jwt", "jwt", undefined]);
// Claims that only ID tokens and security event tokens have.
const otherPurposes = ["nonce", "at_hash", "c_hash", "s_hash", "events"];

// An issuer may sign other kinds of tokens with the same keys. If the type of such a token does not
// reveal its kind, its claims do.
function refuseOtherKinds(type: string | undefined, claims: JWTPayload): void {
  const isAccessToken = accessTypes.has(type?.toLowerCase()) &&
    !otherPurposes.some((claim) => claim in claims);
  if (!isAccessToken) throw badCredential("the token is not an access token");
}

// Any error that is not an ApiError is caused by the token.
async function verified(verify: () => Promise<JWTVerifyResult>): Promise<JWTVerifyResult> {
  try {
    return await verify();
  } catch (error) {
    throw error instanceof ApiError ? error : badCredential(`the token ${problemOf(error)}`);
  }
}

function problemOf(error: unknown): string {
  if (error instanceof errors.JWTExpired) return "has expired, get a new one";
  if (error instanceof errors.JWTClaimValidationFailed) {
    return `is not for this service: its ${error.claim} is missing or wrong`;
  }
  if (error instanceof errors.JOSEAlgNotAllowed) {
    return "is signed with an algorithm that is not allowed";
  }
  if (error instanceof errors.JWKSNoMatchingKey) {
    return "is signed with a key that its issuer does not publish";
  }
  if (error instanceof errors.JWKSMultipleMatchingKeys) return "must name its key in kid";
  if (error instanceof errors.JWSSignatureVerificationFailed) return "has a wrong signature";
  return "can't be read";
}

// Each claim has its own prefix. Otherwise somebody who can choose a client_id at the issuer could
// pass for the user with that sub. Names of static tokens contain no colon.
const namedBy = [["sub", "jwt:"], ["client_id", "jwt-client:"], ["azp", "jwt-azp:"]] as const;
const maxName = 254; // a stored key may add one character, and its field has 255

function nameOf(claims: JWTPayload): string {
  const [claim, prefix] = namedBy.find(([claim]) => claims[claim] !== undefined) ?? namedBy[0];
  const subject = claims[claim];
  const name = `${prefix}${subject}`;
  if (typeof subject === "string" && /^[\x21-\x7e]+$/.test(subject) && name.length <= maxName) {
    return name;
  }
  throw badCredential(
    `the token must have a ${claim} of 1 to ${maxName - prefix.length} visible ASCII characters`,
  );
}

// The claim is a list, or words separated by spaces. Scopes of other services are ignored.
function scopesOf({ scope, scp }: JWTPayload): Caller["scopes"] {
  const granted = [scope, scp].flatMap((claim) =>
    typeof claim === "string" ? claim.split(" ") : Array.isArray(claim) ? claim : []
  );
  return new Set(scopes.filter((scope) => granted.includes(scope)));
}
