import { z } from "zod";
import type { Seals } from "../session/seal.ts";

// What a login needs until the browser comes back. No server keeps it, so any replica can take the
// callback: the state travels through the issuer, and a cookie names the browser. A callback counts only
// in the browser whose login it ends, so nobody can log somebody else in with an account of their own.
// The cookie is the same for all tabs; each tab has its own state.

export const loginMs = 600_000; // for so long a person may take at the issuer

const stateSchema = z.object({
  nonce: z.string(),
  verifier: z.string(),
  return_to: z.string(),
  browser: z.uuid(),
});

const browserSchema = z.object({ browser: z.uuid() });

export type LoginState = z.output<typeof stateSchema>;

export async function sealState(seals: Seals, state: LoginState): Promise<string> {
  return await seals.seal("state", state, Date.now() + loginMs);
}

export async function openState(seals: Seals, sealed: string): Promise<LoginState | undefined> {
  return stateSchema.safeParse(await seals.open("state", sealed)).data;
}

export async function sealBrowser(seals: Seals, browser: string): Promise<string> {
  return await seals.seal("login", { browser }, Date.now() + loginMs);
}

export async function openBrowser(
  seals: Seals,
  cookie: string | undefined,
): Promise<string | undefined> {
  if (cookie === undefined) return undefined;
  return browserSchema.safeParse(await seals.open("login", cookie)).data?.browser;
}
