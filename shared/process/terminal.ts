import { printableJson, printableLines } from "./printable.ts";

// The only place where commands print. What they print may have been written by a user or by a
// hostile server, so all of it is made printable here.

export function print(text: string): void {
  console.log(printableLines(text));
}

export function printJson(value: unknown): void {
  console.log(printableJson(JSON.stringify(value, null, 2)));
}

export function printProblem(text: string): void {
  console.error(printableLines(text));
}
