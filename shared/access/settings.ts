import { z } from "zod";
import { environmentName } from "../process/program.ts";
import { duration, serverUrl, text } from "../process/setting_kinds.ts";
import type { AccessOptions } from "./authenticator.ts";
import { isLoopback } from "./loopback.ts";
import { readEntries, type TokenEntry } from "./tokens.ts";

// The settings that decide who may call. Every service has them.

export const accessSettings = {
  "access.tokens": tokens().optional().describe(
    "Callers with a token, and their scopes, see [access.md](access.md)",
  ),
  "access.jwt.issuer": text().optional().describe("Issuer whose JWTs are accepted"),
  "access.jwt.audience": text().optional().describe("Audience that a JWT must name"),
  "access.jwt.jwks-url": keysUrl().optional().describe("URL of the issuer's public keys"),
  "access.jwt.algorithms": algorithms().prefault("RS256 PS256 ES256 EdDSA").describe(
    "Accepted signature algorithms, all of them asymmetric",
  ),
  "access.jwt.leeway": duration(600_000).prefault("30s").describe(
    "Tolerated difference between the clocks",
  ),
  "access.session-key": sessionKey().optional().describe(
    "Seals the sessions of the console; the same on all replicas ([access.md](access.md))",
  ),
};

type AccessSettings = z.output<z.ZodObject<typeof accessSettings>>;

export function accessOptions(settings: AccessSettings): AccessOptions {
  const issuer = settings["access.jwt.issuer"];
  const audience = settings["access.jwt.audience"];
  const jwksUrl = settings["access.jwt.jwks-url"];
  return {
    tokens: settings["access.tokens"] ?? [],
    sessionKey: settings["access.session-key"],
    jwt: issuer === undefined || audience === undefined || jwksUrl === undefined ? undefined : {
      issuer,
      audience,
      jwksUrl,
      algorithms: settings["access.jwt.algorithms"],
      leewaySeconds: settings["access.jwt.leeway"] / 1_000,
    },
  };
}

const ofIssuer = ["access.jwt.issuer", "access.jwt.audience", "access.jwt.jwks-url"] as const;

// An incomplete issuer would leave the service open, although somebody meant to require
// credentials.
export const issuerIsComplete = z.superRefine<Record<string, unknown>>((settings, { addIssue }) => {
  const missing = ofIssuer.filter((key) => settings[key] === undefined);
  const given = ofIssuer.find((key) => settings[key] !== undefined);
  if (given === undefined || missing.length === 0) return;
  const message = `also needs ${missing.map(environmentName).join(" and ")}`;
  addIssue({ code: "custom", path: [given], message });
});

// Checked even if other settings are wrong, so that all problems are reported together.
export function loopbackUnlessAccess(
  host: string,
): z.core.$ZodCheck<Record<string, unknown>> {
  return z.refine<Record<string, unknown>>(
    (settings) =>
      settings["access.tokens"] !== undefined || settings["access.jwt.issuer"] !== undefined ||
      typeof settings[host] !== "string" || isLoopback(settings[host]),
    {
      path: [host],
      message: "must be 127.0.0.1, ::1 or localhost while no credentials are configured: set " +
        "ACCESS_TOKENS (deno task token makes one) or ACCESS_JWT_ISSUER",
      when: () => true,
    },
  );
}

function tokens(): z.ZodPipe<z.ZodString, z.ZodTransform<TokenEntry[], string>> {
  return text().transform((written, context) => {
    try {
      return readEntries(written);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      context.addIssue(error.message);
      return z.NEVER;
    }
  });
}

function keysUrl(): z.ZodString {
  return serverUrl("https:", "http:").refine((value) => {
    const { protocol, hostname = "", username, password } = URL.parse(value) ?? {};
    return (protocol === "https:" || isLoopback(hostname)) && `${username}${password}` === "";
  }, "must begin with https:// unless its host is this machine, and must have no password");
}

// The error does not repeat the key.
function sessionKey(): z.ZodString {
  return text().regex(
    /^[\x21-\x7e]{32,}$/,
    "must be at least 32 random visible ASCII characters",
  );
}

// Only algorithms whose published key can't be used to sign.
const asymmetric = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];

function algorithms(): z.ZodPipe<z.ZodString, z.ZodTransform<string[], string>> {
  return text().transform((written, context) => {
    const named = written.split(/[\s,]+/).filter((name) => name !== "");
    if (named.length > 0 && named.every((name) => asymmetric.includes(name))) return named;
    context.addIssue(`must be one or more of ${asymmetric.join(" ")}`);
    return z.NEVER;
  });
}
