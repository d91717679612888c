import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { ApiError } from "../http/errors.ts";
import { scopes } from "@kenri/proto/scopes.ts";
import type { Caller } from "./caller.ts";
import { Sessions } from "./sessions.ts";

const key = "k".repeat(32);
const here = new Sessions("entitlement", key);
const { local, encrypted } = here.cookies;
const person: Caller = { name: "jwt:kim", scopes: new Set(scopes) };
const content = {
  issuer: "https://issuer.example",
  name: "jwt:kim",
  scopes: ["debug:read" as const],
};

const isEnded = (error: unknown) => error instanceof ApiError && error.status === 401;

Deno.test("every replica with the same key can open a session, and reads what was sealed", async () => {
  const sealed = await here.seal(content, local, person);
  const opened = await new Sessions("entitlement", key).open(sealed, local);
  assert.deepEqual(opened.content, content);
});

Deno.test("a session ends after eight hours, or with its credential if that ends earlier", async () => {
  const endOf = async (caller: Caller) =>
    (await here.open(await here.seal(content, local, caller), local)).endsAtMs;
  const hours = (await endOf(person) - Date.now()) / 3_600_000;
  assert.ok(hours > 7.99 && hours <= 8, `${hours}`);
  const soonMs = Date.now() + 60_000;
  const end = await endOf({ ...person, expiresAtMs: soonMs });
  assert.ok(end <= soonMs && end > soonMs - 1_000);
  const ended = await here.seal(content, local, { ...person, expiresAtMs: Date.now() - 1_000 });
  await assert.rejects(here.open(ended, local), isEnded);
});

Deno.test("a session is refused by another service, in the other cookie, under another key, and when altered", async () => {
  const sealed = await here.seal(content, local, person);
  await assert.rejects(here.open(sealed, encrypted), isEnded);
  const others = [["notification", key], ["entitlement", "j".repeat(32)], [
    "entitlement",
    undefined,
  ]];
  for (const [service = "", key] of others) {
    const other = new Sessions(service, key);
    await assert.rejects(other.open(sealed, local), isEnded);
    await assert.rejects(here.open(await other.seal(content, local, person), local), isEnded);
  }
  const parts = sealed.split(".");
  for (let i = 0; i < parts.length; i++) {
    const bytes = Buffer.from(parts[i] ?? "", "base64url");
    if (bytes.length === 0) continue; // the part for an encrypted key, which is not used
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
    const altered = parts.with(i, bytes.toString("base64url")).join(".");
    await assert.rejects(here.open(altered, local), isEnded, `part ${i}`);
  }
  for (const text of ["", "x", "....", "a.b.c.d.e", "\0"]) {
    await assert.rejects(here.open(text, local), isEnded);
  }
});

Deno.test("a session does not reveal its caller", async () => {
  const digest = "5d4c".repeat(16);
  const sealed = await here.seal({ digest }, local, person);
  const read = sealed.split(".").map((part) => Buffer.from(part, "base64url").toString("latin1"));
  for (const text of [sealed, ...read]) assert.doesNotMatch(text, /5d4c|kim|entitlement/);
});
