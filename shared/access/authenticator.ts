import type { Log } from "../process/log.ts";
import { anybody, type Caller } from "./caller.ts";
import { IssuerKeys } from "./issuer_keys.ts";
import { type JwtOptions, verifyJwt } from "./jwt.ts";
import { badCredential, noCredential } from "./refusals.ts";
import { type Content, type CookieNames, sessionEnded, Sessions } from "./sessions.ts";
import { callerByDigest, digestOf, type TokenEntry } from "./tokens.ts";

// Finds the caller to whom a credential belongs.

export interface AccessOptions {
  tokens: TokenEntry[];
  jwt: JwtOptions | undefined;
  sessionKey: string | undefined;
}

export interface Authenticator {
  open: boolean; // no credential is needed
  authenticate(credential: string | undefined): Caller | Promise<Caller>;
  sessions: SignIns | undefined; // undefined while no credential is needed
}

// A person signs in with a credential once. After that the browser sends a cookie with a session.
export interface SignIns {
  cookies: CookieNames;
  begin(credential: string, cookie: string): Promise<Begun>;
  resume(session: string, cookie: string): Promise<Caller>;
}

export interface Begun {
  caller: Caller;
  session: string;
}

export const openAuthenticator: Authenticator = {
  open: true,
  authenticate: () => anybody,
  sessions: undefined,
};

export function authenticatorOf(
  service: string,
  { tokens, jwt, sessionKey }: AccessOptions,
  log: Log,
): Authenticator {
  if (tokens.length === 0 && jwt === undefined) {
    log.warn("No credentials are configured: everybody on this machine may use every route");
    return openAuthenticator;
  }
  const clients = [...new Set(tokens.map(({ client }) => client))].join();
  log.info("Callers need a token", { clients, issuer: jwt?.issuer });
  const known = callerByDigest(tokens);
  const callerByJwt = jwt && rememberJwts(jwt, log);
  const authenticate = (credential: string | undefined) => {
    if (credential === undefined) throw noCredential();
    const digest = digestOf(credential);
    const caller = known(digest);
    if (caller) return caller;
    if (callerByJwt && isJwt(credential)) return callerByJwt(credential, digest);
    throw badCredential("the token is unknown or has been revoked");
  };
  const sessions = new Sessions(service, sessionKey);
  const begin = async (credential: string, cookie: string) => {
    const caller = await authenticate(credential);
    const digest = digestOf(credential);
    const content = known(digest) ? { digest } : contentOf(caller, jwt?.issuer ?? "");
    return { caller, session: await sessions.seal(content, cookie, caller) };
  };
  const resume = async (session: string, cookie: string) => {
    const { content, endsAtMs } = await sessions.open(session, cookie);
    const caller = "digest" in content ? known(content.digest) : callerOf(content, jwt?.issuer);
    if (caller === undefined) throw sessionEnded();
    return { ...caller, expiresAtMs: endsAtMs };
  };
  return { open: false, authenticate, sessions: { cookies: sessions.cookies, begin, resume } };
}

function contentOf({ name, scopes }: Caller, issuer: string): Content {
  return { issuer, name, scopes: [...scopes] };
}

// A session ends when its issuer is no longer configured.
function callerOf(
  { issuer, name, scopes }: Exclude<Content, { digest: string }>,
  trusted: string | undefined,
): Caller | undefined {
  return issuer === trusted ? { name, scopes: new Set(scopes) } : undefined;
}

function isJwt(credential: string): boolean {
  return credential.split(".", 4).length === 3;
}

interface Remembered {
  caller: Caller;
  untilMs: number;
}

// Verifying a JWT takes up to milliseconds of processor time, finding it here a microsecond. It is
// remembered for a minute only, so that a key which the issuer withdraws soon loses its effect.
const rememberedMs = 60_000;
const maxRemembered = 10_000;

function rememberJwts(
  options: JwtOptions,
  log: Log,
): (token: string, digest: string) => Caller | Promise<Caller> {
  const keys = new IssuerKeys(options.jwksUrl, log);
  const remembered = new Map<string, Remembered>();
  const verify = async (token: string, digest: string) => {
    const caller = await verifyJwt(token, options, keys);
    const oldest = remembered.keys().next().value;
    if (oldest !== undefined && remembered.size >= maxRemembered) remembered.delete(oldest);
    const untilMs = Math.min(caller.expiresAtMs, Date.now() + rememberedMs);
    remembered.set(digest, { caller, untilMs });
    return caller;
  };
  return (token, digest) => {
    const known = remembered.get(digest);
    if (known && Date.now() < known.untilMs) return known.caller;
    remembered.delete(digest);
    return verify(token, digest);
  };
}
