import assert from "node:assert/strict";
import { z } from "zod";
import { parseSettings, SettingsError } from "./settings.ts";
import { databaseUrl, isEncryptedDatabase, isEncryptedNats, natsUrls } from "./server_urls.ts";
import { databaseTlsIsUsed, natsTlsIsUsed, tlsSettings } from "../postgres/tls.ts";

const schema = z.object({
  "database.url": databaseUrl(),
  "database.tls-ca": tlsSettings["tls-ca"],
  "database.tls-cert": tlsSettings["tls-cert"],
  "database.tls-key": tlsSettings["tls-key"],
  "nats.url": natsUrls(),
  "nats.tls-ca": tlsSettings["tls-ca"],
}).check(...databaseTlsIsUsed("database"), ...natsTlsIsUsed());

const encrypted = {
  DATABASE_URL: "postgres://role:secret@db/name?sslmode=verify-full",
  NATS_URL: "tls://a,tls://b",
};
const plain = { DATABASE_URL: "postgres://role:secret@db/name", NATS_URL: "nats://a,nats://b" };

function problemsOf(given: Record<string, string>): string[] {
  try {
    parseSettings(schema, (name) => given[name]);
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
}

Deno.test("a url means an encrypted and verified connection or an unencrypted one, nothing between", () => {
  for (const urls of [plain, encrypted]) assert.deepEqual(problemsOf(urls), []);
  const disabled = { ...plain, DATABASE_URL: `${plain.DATABASE_URL}?sslmode=disable` };
  assert.deepEqual(problemsOf(disabled), []);
  assert.deepEqual(
    [plain, disabled, encrypted].map((urls) => isEncryptedDatabase(urls.DATABASE_URL)),
    [
      false,
      false,
      true,
    ],
  );
  assert.deepEqual([plain, encrypted].map((urls) => isEncryptedNats(urls.NATS_URL)), [false, true]);
  for (const mode of ["prefer", "require", "verify-ca", "no-verify", "VERIFY-FULL", ""]) {
    const DATABASE_URL = `${plain.DATABASE_URL}?sslmode=${mode}`;
    assert.deepEqual(problemsOf({ ...plain, DATABASE_URL }), [
      "DATABASE_URL must have no parameter but sslmode=verify-full or sslmode=disable",
    ]);
  }
  for (const NATS_URL of ["nats://a,tls://b", "tls://a,nats://b"]) {
    assert.deepEqual(problemsOf({ ...plain, NATS_URL }), [
      "NATS_URL must begin with tls:// in all places, or in none",
    ]);
  }
});

Deno.test("the parameters of a database url can't lead to another host, port, role or file", () => {
  for (
    const search of [
      ...["host=evil", "port=1", "user=owner", "password=secret", "options=-c", "ssl=true"],
      ...[
        "sslrootcert=/etc/passwd",
        "sslmode=verify-full&host=evil",
        "host=%2Frun&sslmode=disable",
      ],
      ...[
        "uselibpqcompat=true&sslmode=require",
        "sslmode=disable?host=evil",
        "sslmode=verify-full#",
      ],
    ]
  ) {
    const [problem = ""] = problemsOf({
      ...plain,
      DATABASE_URL: `${plain.DATABASE_URL}?${search}`,
    });
    assert.match(problem, /^DATABASE_URL must have no parameter/, search);
    assert.doesNotMatch(problem, /secret|evil/);
  }
});

Deno.test("a TLS setting needs a connection that uses it, and a certificate needs its key", () => {
  const ca = "-----BEGIN CERTIFICATE-----";
  assert.deepEqual(problemsOf({ ...encrypted, DATABASE_TLS_CA: ca, NATS_TLS_CA: "/ca.crt" }), []);
  assert.deepEqual(problemsOf({ ...plain, DATABASE_TLS_CA: ca, NATS_TLS_CA: ca }), [
    "DATABASE_TLS_CA needs ?sslmode=verify-full in DATABASE_URL",
    "NATS_TLS_CA needs tls:// in NATS_URL",
  ]);
  assert.deepEqual(problemsOf({ ...encrypted, DATABASE_TLS_CERT: ca }), [
    "DATABASE_TLS_CERT needs DATABASE_TLS_KEY",
  ]);
  assert.deepEqual(problemsOf({ ...encrypted, DATABASE_TLS_KEY: "/key" }), [
    "DATABASE_TLS_KEY needs DATABASE_TLS_CERT",
  ]);
});
