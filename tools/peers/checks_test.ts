import assert from "node:assert/strict";
import { countLate, type Message } from "./checks.ts";

const first: Message = { id: "a", key: "ann:book", version: 1 };
const second: Message = { id: "b", key: "ann:book", version: 2 };
const other: Message = { id: "c", key: "bob:book", version: 1 };
const expected = new Set(["a", "b", "c"]);

Deno.test("each event once, and those of a key by their versions, is as it must be", () => {
  assert.equal(countLate([first, other, second], expected), 0);
  assert.equal(countLate([other, first, second], expected), 0);
});

Deno.test("a missing, a doubled and an unknown event are errors", () => {
  assert.throws(() => countLate([first, second], expected), /has 2 of 3 events/);
  assert.throws(() => countLate([first, second, other, other], expected), /event c twice/);
  assert.throws(() => countLate([first, second, other], new Set(["a", "b"])), /unknown event c/);
});

Deno.test("an event behind a later one of its key is counted", () => {
  assert.equal(countLate([second, other, first], expected), 1);
  const third = { ...second, id: "d", version: 3 };
  assert.equal(countLate([third, first, second, other], new Set([...expected, "d"])), 2);
});
