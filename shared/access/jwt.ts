import { errors, type JWTPayload, jwtVerify, type JWTVerifyResult } from "jose";
import { ApiError } from "../http/errors.ts";
import { type Caller, scopes } from "./caller.ts";
import type { IssuerKeys } from "./issuer_keys.ts";
import { badCredential } from "./refusals.ts";

// Tokens that an issuer has signed: JWTs by RFC 7519, read as RFC 9068 has it.

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

// RFC 9068 has at+jwt. Many issuers write JWT, or nothing.
const accessTypes = new Set(["at+jwt", "application/at+jwt", "jwt", undefined]);
// Claims that only tokens for other purposes have: ID tokens and security event tokens.
const otherPurposes = ["nonce", "at_hash", "c_hash", "s_hash", "events"];

// An issuer signs more than access tokens with the same keys. Without a type of its own, such a token
// is known by its claims.
function refuseOtherKinds(type: string | undefined, claims: JWTPayload): void {
  const isAccessToken = accessTypes.has(type?.toLowerCase()) &&
    !otherPurposes.some((claim) => claim in claims);
  if (!isAccessToken) throw badCredential("the token is not an access token");
}

// Whatever a token makes fail is the token's fault.
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
    return `is not for this service: its ${error.claim} is missing or not the wanted one`;
  }
  if (error instanceof errors.JOSEAlgNotAllowed) return "is signed in a way that is not allowed";
  if (error instanceof errors.JWKSNoMatchingKey) {
    return "is signed with a key that its issuer does not publish";
  }
  if (error instanceof errors.JWKSMultipleMatchingKeys) return "must name its key in kid";
  if (error instanceof errors.JWSSignatureVerificationFailed) return "has a wrong signature";
  return "can't be read";
}

// Each claim has a prefix of its own. Otherwise somebody who can choose a client_id at the issuer could
// pass for the user with that sub. No name of a static token has a colon.
const namedBy = [["sub", "jwt:"], ["client_id", "jwt-client:"], ["azp", "jwt-azp:"]] as const;
const maxName = 254; // with room for one character beside it in a field of 255

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

// A list, or words with spaces between them. What other services call a scope is none of ours.
function scopesOf({ scope, scp }: JWTPayload): Caller["scopes"] {
  const granted = [scope, scp].flatMap((claim) =>
    typeof claim === "string" ? claim.split(" ") : Array.isArray(claim) ? claim : []
  );
  return new Set(scopes.filter((scope) => granted.includes(scope)));
}
