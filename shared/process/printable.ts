// Text from outside must not control a terminal, hide, or change the order of the text beside it:
// control characters (ESC, and U+009B, which is as good as ESC), those that change the direction of
// text, line and paragraph separators, and whatever has no width.
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Default_Ignorable_Code_Point}]/gu;

/** For one line: also a line break is shown as `\u{a}`. */
export function printable(text: string): string {
  return text.replace(unprintable, (one) => `\\u{${one.codePointAt(0)?.toString(16)}}`);
}

/** For a text of several lines, whose parts may have come from outside. */
export function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

/** For JSON: these characters become escapes, so a parser returns the original text. */
export function printableJson(json: string): string {
  return json.replace(unprintable, (found) => {
    if (found === "\n") return found; // between values; within them it is escaped already
    return found.split("").map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      .join("");
  });
}
