import { errors, type JWTPayload, jwtVerify } from "jose";
import { ApiError } from "../errors.ts";
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
  const claims = await verifiedClaims(() =>
    jwtVerify(token, keys.find, {
      issuer,
      audience,
      algorithms,
      clockTolerance: leewaySeconds,
      requiredClaims: ["exp"],
    })
  );
  return {
    name: nameOf(claims),
    scopes: scopesOf(claims),
    expiresAtMs: ((claims.exp ?? 0) + leewaySeconds) * 1_000,
  };
}

// Whatever a token makes fail is the token's fault.
async function verifiedClaims(
  verify: () => Promise<{ payload: JWTPayload }>,
): Promise<JWTPayload> {
  try {
    return (await verify()).payload;
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

// No name of a static token has a colon.
const subjectPattern = /^[\x21-\x7e]{1,250}$/;

function nameOf({ sub, ...others }: JWTPayload): string {
  const subject = sub ?? others["client_id"] ?? others["azp"];
  if (typeof subject === "string" && subjectPattern.test(subject)) return `jwt:${subject}`;
  throw badCredential("the token must have a sub of 1 to 250 visible ASCII characters");
}

// A list, or words with spaces between them. What other services call a scope is none of ours.
function scopesOf({ scope, scp }: JWTPayload): Caller["scopes"] {
  const granted = [scope, scp].flatMap((claim) =>
    typeof claim === "string" ? claim.split(" ") : Array.isArray(claim) ? claim : []
  );
  return new Set(scopes.filter((scope) => granted.includes(scope)));
}
