import { Buffer } from "node:buffer";
import { hash, timingSafeEqual } from "node:crypto";
import { type Scope, scopes } from "@kenri/proto/scopes.ts";
import type { Caller } from "./caller.ts";

// Static tokens of clients. The settings contain only digests, which nobody can use as credentials.

export interface TokenEntry {
  client: string;
  digest: string; // SHA-256 in hexadecimal
  scopes: Scope[];
}

// A fixed prefix lets secret scanners find tokens.
const prefix = "kenri_";

export function newToken(): string {
  return prefix + Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("hex");
}

export function digestOf(token: string): string {
  return hash("sha256", token, "hex");
}

export function writeEntry({ client, digest, scopes }: TokenEntry): string {
  return [client, `sha256:${digest}`, ...scopes].join(" ");
}

export const clientPattern = /^[A-Za-z0-9._-]{1,64}$/;
const digestPattern = /^sha256:([0-9a-f]{64})$/;

// Entries are separated by line breaks or semicolons. The message of an error repeats nothing of an
// entry, because it may contain the token itself by mistake.
export function readEntries(text: string): TokenEntry[] {
  const entries = text.split(/[;\n]/).map((entry) => entry.trim()).filter((entry) => entry !== "");
  if (entries.length === 0) throw new TypeError("must have at least one entry");
  const read = entries.map((entry, at) => readEntry(entry, `entry ${at + 1}`));
  if (new Set(read.map(({ digest }) => digest)).size < read.length) {
    throw new TypeError("must not contain a digest twice");
  }
  return read;
}

function readEntry(entry: string, which: string): TokenEntry {
  const [client = "", written = "", ...named] = entry.split(/\s+/);
  const [, digest] = digestPattern.exec(written) ?? [];
  if (!clientPattern.test(client) || digest === undefined || named.length === 0) {
    throw new TypeError(
      `${which} must be a client's name, sha256: with 64 hexadecimal digits, and at least one scope`,
    );
  }
  return { client, digest, scopes: named.map((name) => readScope(name, which)) };
}

export function readScope(name: string, which: string): Scope {
  const scope = scopes.find((scope) => scope === name);
  if (scope === undefined) {
    throw new TypeError(`${which} must have scopes from ${scopes.join(", ")}`);
  }
  return scope;
}

// Compares digests, so that the time it takes reveals nothing about a known token.
export function callerByDigest(
  entries: TokenEntry[],
): (digest: string) => Caller | undefined {
  const known = new Map(entries.map(({ client, digest, scopes }) => [
    digest,
    { digest: Buffer.from(digest), caller: { name: client, scopes: new Set(scopes) } },
  ]));
  return (digest) => {
    const entry = known.get(digest);
    return entry && timingSafeEqual(entry.digest, Buffer.from(digest)) ? entry.caller : undefined;
  };
}
