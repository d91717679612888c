import assert from "node:assert/strict";
import { instantOf } from "./instant.ts";

Deno.test("two spellings of one instant give the same text, in UTC with microseconds", () => {
  const spellings = [
    "2026-01-02T03:04:05.5Z",
    "2026-01-02t12:04:05.500+09:00",
    "2026-01-01T23:34:05.500000-03:30",
    "2026-01-02T03:04:05.5000009z",
  ];
  for (const text of spellings) assert.equal(instantOf(text), "2026-01-02T03:04:05.500000Z", text);
});

Deno.test("the bounds of what PostgreSQL can store are accepted, and nothing beyond", () => {
  assert.equal(instantOf("0001-01-01T00:00:00Z"), "0001-01-01T00:00:00.000000Z");
  assert.equal(instantOf("9999-12-31T23:59:59.999999Z"), "9999-12-31T23:59:59.999999Z");
  assert.equal(instantOf("0001-01-01T00:00:00+00:01"), undefined);
  assert.equal(instantOf("9999-12-31T23:59:59-00:01"), undefined);
});

Deno.test("a text that is not an existing time with an offset is refused", () => {
  const refused = [
    ...["", "now", "2026-01-02", "2026-01-02T03:04:05", "2026-01-02 03:04:05Z", "1767322000"],
    ...["2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z"],
    ...["2026-01-02T24:00:00Z", "2026-12-31T23:59:60Z", "2026-01-02T03:60:00Z"],
    ...["2026-01-02T03:04:05+24:00", "2026-01-02T03:04:05+09:60", "2026-01-02T03:04:05+9"],
    ...["2026-01-02T03:04:05.Z", "2026-01-02T03:04Z", " 2026-01-02T03:04:05Z", "infinity"],
  ];
  for (const text of refused) assert.equal(instantOf(text), undefined, text);
});
