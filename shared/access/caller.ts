import type {} from "hono";
import { type Scope, scopes } from "@kenri/proto/scopes.ts";

// Who sends a request, and which scopes that caller has.

export interface Caller {
  name: string;
  scopes: ReadonlySet<Scope>;
  expiresAtMs?: number; // if the credential expires
}

// While no credentials are configured, only this machine can call, and every caller has all scopes.
export const anybody: Caller = { name: "", scopes: new Set(scopes) };

declare module "hono" {
  interface ContextVariableMap {
    caller?: Caller; // set before the handler of a route runs, unless the path is public
  }
}
