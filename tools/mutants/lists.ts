// The mutants are lists of text in tools/mutants/lists. After a line "=== FILE" each entry has the
// property that the bug breaks, the text to replace (-), the text that replaces it (+), and the test
// files that must fail (?). A list may begin with the bugs that it leaves out, and why.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Mutant } from "./mutant.ts";

const folder = fileURLToPath(new URL("lists/", import.meta.url));

export const allMutants: Mutant[] = readdirSync(folder).sort()
  .flatMap((name) => readList(readFileSync(folder + name, "utf8")));

export function readList(text: string): Mutant[] {
  return text.split(/^=== /m).slice(1).flatMap((section) => {
    const [file = "", ...lines] = section.split("\n");
    return lines.join("\n").trim().split(/\n\n+/).map((entry) => readMutant(file, entry));
  });
}

function readMutant(file: string, entry: string): Mutant {
  const lines = entry.split("\n");
  const marked = (mark: string) =>
    lines.filter((line) => line.startsWith(`${mark} `)).map((line) => line.slice(2));
  return {
    file,
    property: lines[0] ?? "",
    replace: marked("-").join("\n"),
    by: marked("+").join("\n"),
    tests: marked("?"),
  };
}
