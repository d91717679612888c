import type { Context } from "hono";
import { getCookie } from "hono/cookie";
import { ApiError } from "../errors.ts";
import type { Caller, Scope } from "./caller.ts";
import type { Door } from "./door.ts";
import { badCredential, noCredential, scopeMissing } from "./refusals.ts";

// Who is let in. It stands before all routes, so also a path that does not exist is answered only to
// those who are known: nobody else finds out what is there.

// Everybody is answered here, and nowhere else.
const publicPaths = new Set([
  ...["/livez", "/readyz", "/openapi.json", "/docs"],
  // The way into the console, and what its page is drawn with.
  ...["/console/sign-in", "/console/style.css", "/console/icon.svg"],
]);

export function isPublic(path: string): boolean {
  return publicPaths.has(path);
}

export const signInPath = "/console/sign-in";
export const cookieName = "kenri_credential";

// Sets the caller, throws, or leads a person to where one signs in. Nothing of the body is read.
export async function admit(context: Context, door: Door): Promise<Response | undefined> {
  const { req } = context;
  if (isPublic(req.path)) return undefined;
  const within = callerWithin(context);
  if (within || door.open) {
    context.set("caller", within ?? await door.authenticate(undefined));
    return undefined;
  }
  const isOfConsole = /^\/console(\/|$)/.test(req.path);
  const credential = bearerOf(req.raw.headers.get("Authorization")) ??
    (isOfConsole ? getCookie(context, cookieName) : undefined);
  try {
    context.set("caller", await door.authenticate(credential));
    return undefined;
  } catch (error) {
    const isVisit = isOfConsole && req.method === "GET" && wantsPage(req.raw.headers);
    const isUnknown = error instanceof ApiError && error.code === "UNAUTHORIZED";
    if (isVisit && isUnknown) return context.redirect(signInPath, 303);
    throw error;
  }
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
