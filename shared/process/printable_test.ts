import assert from "node:assert/strict";
import { printable, printableJson, printableLines } from "./printable.ts";

// By their code points, because nobody could read them here.
const steering = [
  ...[0x00, 0x07, 0x08, 0x09, 0x0a, 0x0d, 0x1b, 0x7f], // control characters
  ...[0x80, 0x84, 0x90, 0x9b, 0x9c, 0x9d, 0x9f], // the same in one character of their own
  ...[0x061c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e], // direction
  ...[0x2066, 0x2067, 0x2068, 0x2069],
  ...[0x2028, 0x2029], // separators
  ...[0x00ad, 0x034f, 0x180e, 0x200b, 0x200c, 0x200d, 0x2060, 0xfeff], // without a width
  ...[0x115f, 0x3164, 0xffa0, 0xfe0f, 0xfff9, 0xe0001, 0xe0041, 0xe0100],
  ...[0xd800, 0xdfff, 0xe000, 0xf0000], // half a character, and nobody's
];

Deno.test("characters that could control a terminal or be invisible are escaped", () => {
  for (const code of steering) {
    const shown = `a\\u{${code.toString(16)}}b`;
    assert.equal(printable(`a${String.fromCodePoint(code)}b`), shown);
  }
  assert.equal(printable("\x1b]52;c;cm0gLXJm\x07"), "\\u{1b}]52;c;cm0gLXJm\\u{7}");
});

Deno.test("ordinary text stays as it is", () => {
  for (
    const text of ["Ann O'Hara <ann@example.org>", "größe", "ключ", "鍵 🔑", "مفتاح", "e\u0301"]
  ) {
    assert.equal(printable(text), text);
    assert.equal(printableJson(JSON.stringify(text)), JSON.stringify(text));
  }
});

Deno.test("in several lines only the line breaks are not escaped", () => {
  assert.equal(printableLines("one\r\ntwo\x1b[2J\n"), "one\\u{d}\ntwo\\u{1b}[2J\n");
});

Deno.test("JSON keeps its content, in printable characters", () => {
  const value = { texts: steering.map((code) => `a${String.fromCodePoint(code)}b`), "\u202e": 1 };
  for (const json of [JSON.stringify(value), JSON.stringify(value, null, 2)]) {
    const shown = printableJson(json);
    assert.deepEqual(JSON.parse(shown), value);
    assert.equal(printableLines(shown), shown);
  }
});
