// What tests can make go wrong at the issuer, and the commands that its process reads as lines of JSON.
// Both processes import this file, so it imports nothing.

export type Claims = Record<string, unknown>;

export type Endpoint = "discovery" | "authorize" | "token" | "keys" | "userinfo" | "other";

export interface Fault {
  delayMs?: number; // before anything else happens
  instead?: "hang" | "close"; // of any answer
  status?: number; // instead of the true answer, with `headers` and `body`
  headers?: Record<string, string>;
  body?: string;
  json?: Record<string, unknown>; // members that replace those of the true answer; null removes one
}

export type SignedBy =
  | "own key"
  | "unpublished key"
  | "public key as secret"
  | "nobody"
  | "wrong signature";

/** A token that the issuer would not make by itself. */
export interface Forged {
  claims: Claims; // null removes one
  by?: SignedBy; // own key
  typ?: string; // JWT
}

export interface Faults {
  at?: Partial<Record<Endpoint, Fault>>;
  everywhere?: Fault;
  idToken?: Partial<Forged>; // its claims replace those of each ID token
}

/** The first line that the process reads. */
export interface Options {
  port: number; // 0: any
  clientId: string;
  clientSecret: string;
  backchannel?: string | undefined; // the url at which logouts are announced
}

export type Command =
  | { do: "faults"; faults: Faults } // in place of all earlier ones
  | { do: "rotate" } // from now on it signs with a new key, and publishes only that one
  | { do: "users"; users: Record<string, Claims> } // further claims of users; null removes one
  | { do: "announce"; backchannel: string }
  | { do: "sign"; forged: Forged } // answers with the token
  | { do: "count" }; // answers with the requests that have arrived at each endpoint

export type Counts = Partial<Record<Endpoint, number>>;
