import type { Context } from "hono";
import { type Scope, scopes } from "@kenri/proto/scopes.ts";

// Who sends a request, and which scopes that caller has.

export interface Caller {
  name: string;
  scopes: ReadonlySet<Scope>;
  expiresAtMs?: number; // if the credential expires
}

// While no credentials are configured, only this machine can call, and every caller has all scopes.
export const anybody: Caller = { name: "", scopes: new Set(scopes) };

// Of the handler of a route.
export function callerOf(context: Context): Caller {
  return context.get("caller") ?? anybody;
}

declare module "hono" {
  interface ContextVariableMap {
    caller?: Caller; // set before the handler of a route runs, unless the path is public
  }
}
