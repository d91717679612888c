// Credentials of callers, made as an operator makes them.
import type { Scope } from "../../proto/scopes.ts";
import { digestOf, newToken, writeEntry } from "../../shared/access/tokens.ts";
import type { Settings } from "../../tools/servers/service_process.ts";

export interface Client {
  token: string;
  entry: string; // of access.tokens
}

export function newClient(client: string, ...scopes: Scope[]): Client {
  const token = newToken();
  return { token, entry: writeEntry({ client, digest: digestOf(token), scopes }) };
}

export function tokensOf(...clients: Client[]): Settings {
  return { ACCESS_TOKENS: clients.map(({ entry }) => entry).join("; ") };
}

export function bearer(token: string): { Authorization: string } {
  return { Authorization: `Bearer ${token}` };
}
