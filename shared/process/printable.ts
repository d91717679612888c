// Text from outside must not control a terminal, be invisible, or reorder the text beside it. So
// these are escaped: control characters (ESC, and U+009B, which works like ESC), characters that
// change the direction of text, line and paragraph separators, and characters without width.
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Default_Ignorable_Code_Point}]/gu;

/** For one line: a line break is escaped too, as `\u{a}`. */
export function printable(text: string): string {
  return text.replace(unprintable, (one) => `\\u{${one.codePointAt(0)?.toString(16)}}`);
}

/** For text of several lines. */
export function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

const plain = /^[\x20-\x7e]*$/; // nearly all text is, and this is found out faster

/** For JSON: these characters become escapes, so a parser returns the original text. */
export function printableJson(json: string): string {
  if (plain.test(json)) return json;
  return json.replace(unprintable, (found) => {
    if (found === "\n") return found; // between values; within them it is escaped already
    return found.split("").map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      .join("");
  });
}
