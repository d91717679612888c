import assert from "node:assert/strict";
import pg from "pg";
import { isNotAdmitted, isUnavailable, utcOf } from "./postgres.ts";

function answered(code: string): Error {
  return Object.assign(new pg.DatabaseError("an error", 8, "error"), { code });
}

const away: Record<string, string> = {
  "08006": "the connection failed",
  "53300": "too many connections",
  "53100": "the disk is full",
  "57P01": "it is being shut down",
  "57P03": "it is starting",
  "25006": "it became a standby",
  "25P03": "the transaction was idle for too long",
  "55P03": "a lock was not granted in time",
  "57014": "the statement took too long",
};
const ofStatement: Record<string, string> = {
  "22P02": "a text is not a number",
  "23505": "a key exists already",
  "23514": "a check fails",
  "40P01": "a deadlock",
  "42501": "a privilege is missing",
  "25001": "the statement can't run in a transaction",
  "57000": "an operator intervened in some other way",
};

for (const [code, meaning] of Object.entries(away)) {
  Deno.test(`the database is unavailable when ${meaning}`, () => {
    assert.equal(isUnavailable(answered(code)), true);
  });
}

for (const [code, meaning] of Object.entries(ofStatement)) {
  Deno.test(`the statement failed, and not the database, when ${meaning}`, () => {
    assert.equal(isUnavailable(answered(code)), false);
  });
}

Deno.test("a connection error means that the database is unavailable, any other error is a bug", () => {
  const messages = [
    "Connection terminated unexpectedly",
    "timeout exceeded when trying to connect",
    "Query read timeout",
    "connect ECONNREFUSED 127.0.0.1:5432",
    "getaddrinfo ENOTFOUND db",
    "write EPIPE",
  ];
  for (const message of messages) assert.equal(isUnavailable(new Error(message)), true, message);
  assert.equal(isUnavailable(Object.assign(new Error(""), { code: "ECONNRESET" })), true);
  assert.equal(isUnavailable(new TypeError("undefined is not a function")), false);
  assert.equal(isUnavailable("timeout"), false);
  // An error that the server returned does not mean that it is unavailable, whatever its text.
  const refused = Object.assign(new pg.DatabaseError("timeout refused", 8, "error"), {
    code: "23514",
  });
  assert.equal(isUnavailable(refused), false);
});

Deno.test("a refused login is distinguished from an unavailable server", () => {
  for (const code of ["28P01", "28000", "3D000"]) assert.equal(isNotAdmitted(answered(code)), true);
  for (const code of ["08006", "3F000", "42501"]) {
    assert.equal(isNotAdmitted(answered(code)), false);
  }
});

Deno.test("a time is written with all microseconds, however many PostgreSQL writes", () => {
  const whole = "2026-01-02 03:04:05";
  for (const [given, digits] of [["", "000000"], [".5", "500000"], [".000789", "000789"]]) {
    assert.equal(utcOf(`${whole}${given}+00`), `2026-01-02T03:04:05.${digits}Z`);
  }
});
