import assert from "node:assert/strict";
import { list, literal, name, nothing, sql } from "./sql.ts";

Deno.test("a hole is a value and becomes a parameter", () => {
  const statement = sql`select ${1} + ${"'; drop table users; --"}`;
  assert.equal(statement.text, "select $1 + $2");
  assert.deepEqual(statement.values, [1, "'; drop table users; --"]);
});

Deno.test("a statement is spliced into another with its own values, in order", () => {
  const part = sql`b = ${2} and c = ${3}`;
  const statement = sql`select where a = ${1} and ${part} and d = ${4}${nothing}`;
  assert.equal(statement.text, "select where a = $1 and b = $2 and c = $3 and d = $4");
  assert.deepEqual(statement.values, [1, 2, 3, 4]);
});

Deno.test("a part that is used twice has its values twice", () => {
  const one = sql`x = ${1}`;
  const statement = sql`${one} or ${one}`;
  assert.equal(statement.text, "x = $1 or x = $2");
  assert.deepEqual(statement.values, [1, 1]);
});

Deno.test("an array, a date and null are values, not parts", () => {
  const values = [["a", "b"], new Date(0), null, undefined];
  const statement = sql`${values[0]}${values[1]}${values[2]}${values[3]}`;
  assert.equal(statement.text, "$1$2$3$4");
  assert.deepEqual(statement.values, values);
});

Deno.test("names and literals become text only if they need no quotes", () => {
  assert.equal(
    sql`${name("outbox_events")} ${literal("IN_FLIGHT")}`.text,
    "outbox_events 'IN_FLIGHT'",
  );
  for (const word of ["", "a b", "a;b", 'a"b', "a'b", "a--b", "1a", "é"]) {
    assert.throws(() => name(word), /can't be a part of a statement/);
    assert.throws(() => literal(word), /can't be a part of a statement/);
  }
});

Deno.test("a list joins its parts", () => {
  const statement = list([sql`a = ${1}`, sql`b = ${2}`], " and ");
  assert.equal(statement.text, "a = $1 and b = $2");
  assert.equal(list([]).text, "");
});
