// Lines that scroll, and on a terminal a status line that stays below them.

import { printableLines } from "../../shared/process/printable.ts";

const live = Deno.stdout.isTerminal();
const colored = live && !Deno.noColor;
const encoder = new TextEncoder();
const startedAt = performance.now();

const codes = { green: 32, yellow: 33, red: 31, cyan: 36, magenta: 35, grey: 90, bold: 1 };

/** The text may come from a service, so its own control codes are removed. */
export function paint(color: keyof typeof codes, text: string): string {
  const shown = printableLines(text);
  return colored ? `\x1b[${codes[color]}m${shown}\x1b[0m` : shown;
}

let status = "";

export function say(line: string): void {
  write(`${clear()}${line}\n${status}`);
}

export function sayTimed(line: string): void {
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  say(`${paint("grey", `${seconds.padStart(5)} s`)}  ${line}`);
}

export function showStatus(line: string): void {
  if (!live) return;
  const before = clear();
  // A line that wraps could not be cleared again.
  status = line.slice(0, Deno.consoleSize().columns - 1);
  write(`${before}${paint("bold", status)}`);
}

export function endStatus(): void {
  write(clear());
  status = "";
}

function clear(): string {
  return live ? "\r\x1b[2K" : "";
}

function write(text: string): void {
  Deno.stdout.writeSync(encoder.encode(text));
}
