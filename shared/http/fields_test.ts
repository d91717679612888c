import assert from "node:assert/strict";
import fc from "fast-check";
import { z } from "@hono/zod-openapi";
import { fieldSchema, isStorableTime, problemsOf } from "./fields.ts";

const schema = z.object({ name: fieldSchema() });

function problemOf(name?: unknown): string {
  const { error } = schema.safeParse({ name });
  return error ? problemsOf(error) : "";
}

Deno.test("any text of 1 to 255 characters without control characters is accepted unchanged", () => {
  const texts = fc.string({ unit: "grapheme", minLength: 1, maxLength: 255 })
    .filter((text) => text.trim() !== "" && !/\p{Cc}/u.test(text) && [...text].length <= 255);
  fc.assert(fc.property(texts, (text) => assert.equal(schema.parse({ name: text }).name, text)));
});

Deno.test("length is counted in characters, and an emoji is one", () => {
  assert.equal(problemOf("🎫".repeat(255)), "");
  assert.equal(problemOf("🎫".repeat(256)), "name must have at most 255 characters");
  assert.equal(problemOf("x".repeat(255)), "");
  assert.equal(problemOf("x".repeat(256)), "name must have at most 255 characters");
});

Deno.test("a missing or blank value is reported as required", () => {
  for (const blank of [undefined, null, "", " ", "\t\r\n", "\u00a0", "\u2003\u3000", "\ufeff"]) {
    assert.equal(problemOf(blank), "name is required");
  }
});

Deno.test("a value of another type is reported as not a string", () => {
  for (const other of [0, 1, true, false, [], ["a"], {}, { length: 1 }]) {
    assert.equal(problemOf(other), "name must be a string");
  }
});

Deno.test("every control character is refused at any position", () => {
  const controls = [...Array(0x20).keys(), ...Array.from({ length: 0x21 }, (_, i) => 0x7f + i)];
  for (const code of controls) {
    const control = String.fromCharCode(code);
    for (const text of [`a${control}`, `${control}a`]) {
      assert.equal(problemOf(text), "name must not have control characters", `U+${code}`);
    }
  }
});

Deno.test("half a surrogate pair is refused", () => {
  for (const text of ["\ud800", "a\ud800", "\udc00a", "\ud83c \udfab"]) {
    assert.equal(problemOf(text), "name must be well-formed Unicode");
  }
});

Deno.test("every bad field is named, and a value that is not an object is an invalid body", () => {
  const two = z.object({ a: fieldSchema(), b: fieldSchema() });
  const problems = (value: unknown) => problemsOf(two.safeParse(value).error as z.ZodError);
  assert.equal(problems({ a: 1 }), "a must be a string; b is required");
  for (const value of [null, [], "text", 1]) {
    assert.equal(problems(value), "request body is invalid");
  }
});

Deno.test("of many problems the first five are named and the rest counted", () => {
  const { error } = z.array(z.string()).safeParse(Array(1_000).fill(1));
  const problems = problemsOf(error as z.ZodError);
  assert.match(problems, /^0 .*; 4 [^;]*; and 995 more$/);
  assert.ok(problems.length < 500);
});

Deno.test("of long problems as many are named as fit, and always one", () => {
  const problemsWith = (message: string) => {
    const { error } = z.array(z.never(message)).safeParse([1, 2, 3, 4]);
    return problemsOf(error as z.ZodError);
  };
  const [long, tooLong] = ["x".repeat(150), "x".repeat(450)];
  assert.equal(problemsWith(long), `0 ${long}; 1 ${long}; and 2 more`);
  assert.equal(problemsWith(tooLong), `0 ${tooLong}; and 3 more`);
});

Deno.test("a time is storable if PostgreSQL accepts its year, its offset and its fraction", () => {
  const good = ["2026-01-02T03:04:05Z", "0001-01-01T00:00:00.123456789-15:59", "9999-12-31T23:59Z"];
  const bad = ["0000-01-01T00:00:00Z", "2026-01-02T03:04:05+16:00", "2026-01-02T03:04:05-23:59"]
    .concat(`2026-01-02T03:04:05.${"1".repeat(100)}Z`);
  for (const time of good) assert.ok(isStorableTime(time), time);
  for (const time of bad) assert.ok(!isStorableTime(time), time);
});
