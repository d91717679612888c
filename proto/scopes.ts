// What a credential may allow. A token may be for several services, and each of them refuses a token
// with an unknown scope, so this is the list of all services.

export const scopes = [
  "entitlements:write",
  "entitlements:read",
  "points:write",
  "points:read",
  "notifications:read",
  "orders:write",
  "orders:read",
  "endpoints:write",
  "endpoints:read",
  "accounts:resolve",
  "accounts:read",
  "accounts:write",
  "accounts:admin",
  "accounts:act-as",
  "matchmaking:act-as",
  "send",
  "debug:read",
  "operations:write",
  "metrics:read",
] as const;

export type Scope = typeof scopes[number];
