import type { Context } from "hono";
import { getCookie } from "hono/cookie";
import { ApiError } from "../http/errors.ts";
import { Arrival } from "../http/limits.ts";
import type { Caller, Scope } from "./caller.ts";
import type { Authenticator } from "./authenticator.ts";
import { badCredential, noCredential, scopeMissing } from "./refusals.ts";

// Who is let in. It stands before all routes, so also a path that does not exist is answered only to
// those who are known: nobody else finds out what is there.

// Everybody is answered here, and nowhere else.
const publicPaths = new Set([
  ...["/livez", "/readyz", "/openapi.json", "/docs"],
  // The way into the console, and what its page is drawn with.
  ...["/console/sign-in", "/console/style.css", "/console/icon.svg"],
]);

const healthPaths = new Set(["/livez", "/readyz"]);

export function isPublic(path: string): boolean {
  return publicPaths.has(path);
}

export const signInPath = "/console/sign-in";

// Sets the caller, or throws. Nothing of the body is read.
export function admit(context: Context, authenticator: Authenticator): undefined | Promise<void> {
  const { path } = context.req;
  const arrival = context.env instanceof Arrival ? context.env : undefined;
  if (isPublic(path)) {
    if (!healthPaths.has(path)) arrival?.enter("stranger");
    return undefined;
  }
  const letIn = (caller: Caller) => {
    arrival?.enter("caller");
    context.set("caller", caller);
  };
  const caller = callerOf(context, authenticator);
  if (!(caller instanceof Promise)) {
    letIn(caller);
    return undefined;
  }
  try {
    arrival?.enter("unchecked");
  } catch (error) {
    caller.catch(() => {}); // nobody waits for it, and it must take no place when it is known
    throw error;
  }
  return caller.then(letIn);
}

function callerOf(context: Context, authenticator: Authenticator): Caller | Promise<Caller> {
  const within = callerWithin(context);
  if (within) return within;
  if (authenticator.open) return authenticator.authenticate(undefined);
  const token = bearerOf(context.req.raw.headers.get("Authorization"));
  const session = token === undefined ? sessionOf(context, authenticator) : undefined;
  return session ?? authenticator.authenticate(token);
}

// The browser may still have an expired cookie of the other kind.
function sessionOf(context: Context, { sessions }: Authenticator): Promise<Caller> | undefined {
  if (sessions === undefined || !isOfConsole(context)) return undefined;
  const { encrypted, local } = sessions.cookies;
  const [first, second] = [encrypted, local].flatMap((cookie) => {
    const session = getCookie(context, cookie);
    return session === undefined ? [] : [() => sessions.resume(session, cookie)];
  });
  return second ? first?.().catch(second) : first?.();
}

const isOfConsole = ({ req }: Context) => /^\/console(\/|$)/.test(req.path);

// A person who is not signed in is sent to the page to sign in.
export function leadsToSignIn(context: Context, error: unknown): boolean {
  return isOfConsole(context) && context.req.method === "GET" &&
    wantsPage(context.req.raw.headers) &&
    error instanceof ApiError && error.code === "UNAUTHORIZED";
}

// Whoever is not known at all has been refused before.
export function needScope(context: Context, scope: Scope): void {
  const caller = context.get("caller");
  if (caller === undefined) throw noCredential();
  if (!caller.scopes.has(scope)) throw scopeMissing(scope);
}

function bearerOf(header: string | null): string | undefined {
  if (header === null) return undefined;
  const [, token] = /^Bearer +([\x21-\x7e]+)$/i.exec(header) ?? [];
  if (token === undefined) throw badCredential("Authorization must be Bearer and one token");
  return token;
}

function wantsPage(headers: Headers): boolean {
  const mode = headers.get("Sec-Fetch-Mode");
  return mode === null ? (headers.get("Accept") ?? "").includes("text/html") : mode === "navigate";
}

// A service that asks itself says for whom. What comes over the network has no such thing.
export interface Within {
  caller: Caller;
}

function callerWithin({ env }: Context): Caller | undefined {
  return (env as Partial<Within> | undefined)?.caller;
}
