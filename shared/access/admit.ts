import type { Context } from "hono";
import { getCookie } from "hono/cookie";
import { ApiError } from "../http/errors.ts";
import { RequestSlot } from "../http/slots.ts";
import type { Scope } from "@kenri/proto/scopes.ts";
import type { Caller } from "./caller.ts";
import type { Authenticator } from "./authenticator.ts";
import { badCredential, noCredential, noSession, scopeMissing } from "./refusals.ts";
import type { Visitors } from "./visitors.ts";

// Who is admitted. This is decided before a route is looked for, so that only known callers find
// out which paths exist.

// These paths, and no others, are answered without a credential.
const publicPaths = new Set([
  ...["/livez", "/readyz", "/openapi.json", "/docs"],
  // The page to sign in to the console, with its style and its icon.
  ...["/console/sign-in", "/console/style.css", "/console/icon.svg"],
]);

const healthPaths = new Set(["/livez", "/readyz"]);

export function isPublic(path: string, visitors?: Visitors): boolean {
  return publicPaths.has(path) || visitors?.publicPaths.has(path) === true;
}

export const signInPath = "/console/sign-in";

// Sets the caller of the request, or throws. Reads nothing of the body.
export function admit(
  context: Context,
  authenticator: Authenticator,
  visitors?: Visitors,
): undefined | Promise<void> {
  const { path, method } = context.req;
  const slot = slotOf(context);
  if (isPublic(path, visitors)) {
    const isArriving = visitors?.publicPaths.has(path) === true && method === "GET";
    if (!healthPaths.has(path)) slot?.take(isArriving ? "arriving" : "anonymous");
    return undefined;
  }
  if (visitors?.isTheirs(path)) {
    slot?.take("unchecked");
    return visitors.admit(context).then(() => slot?.take("caller"));
  }
  const admitCaller = (caller: Caller) => {
    slot?.take("caller");
    context.set("caller", caller);
  };
  const caller = callerOf(context, authenticator);
  if (!(caller instanceof Promise)) {
    admitCaller(caller);
    return undefined;
  }
  try {
    slot?.take("unchecked");
  } catch (error) {
    caller.catch(() => {}); // the request is refused already, and must not take a slot later
    throw error;
  }
  return caller.then(admitCaller);
}

// Undefined for a request that the service makes of itself.
export function slotOf({ env }: Context): RequestSlot | undefined {
  return env instanceof RequestSlot ? env : undefined;
}

function callerOf(context: Context, authenticator: Authenticator): Caller | Promise<Caller> {
  const internal = internalCaller(context);
  if (internal) return internal;
  if (authenticator.open) return authenticator.authenticate(undefined);
  const token = bearerOf(context.req.raw.headers.get("Authorization"));
  const session = token === undefined ? sessionOf(context, authenticator) : undefined;
  return session ?? authenticator.authenticate(token);
}

// If there are two cookies, one may have expired.
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

// A person who is not signed in is sent to the sign-in page.
export function redirectsToSignIn(context: Context, error: unknown): boolean {
  return isOfConsole(context) && context.req.method === "GET" &&
    wantsPage(context.req.raw.headers) &&
    error instanceof ApiError && error.code === "UNAUTHORIZED";
}

export function requireScope(context: Context, scope: Scope | "session"): void {
  if (scope === "session") {
    if (!context.get("visitor")) throw noSession();
    return;
  }
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

// Whether a browser asks for a page, and not a program for an answer.
export function wantsPage(headers: Headers): boolean {
  const mode = headers.get("Sec-Fetch-Mode");
  return mode === null ? (headers.get("Accept") ?? "").includes("text/html") : mode === "navigate";
}

// A service that calls its own routes passes the caller in place of a RequestSlot. A request from
// the network can't do that.
export interface InternalCall {
  caller: Caller;
}

function internalCaller({ env }: Context): Caller | undefined {
  return (env as Partial<InternalCall> | undefined)?.caller;
}
