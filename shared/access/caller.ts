import type {} from "hono";

// Who calls, and what that caller may do.

export const scopes = [
  "entitlements:write",
  "entitlements:read",
  "notifications:read",
  "debug:read",
  "operations:write",
  "metrics:read",
] as const;

export type Scope = typeof scopes[number];

export interface Caller {
  name: string;
  scopes: ReadonlySet<Scope>;
  expiresAtMs?: number; // of a credential that has an end
}

// Where no credentials are configured only this machine can call, and whoever does may do all.
export const anybody: Caller = { name: "", scopes: new Set(scopes) };

declare module "hono" {
  interface ContextVariableMap {
    caller?: Caller; // set before any handler of a route runs, except where everybody is answered
  }
}
