// JSON lines are for machines. A developer gets time, service, level, message, and the rest in grey.

import * as services from "../../services.ts";
import { printable, printableJson } from "../../shared/process/printable.ts";

const plain = Deno.noColor || !Deno.stdout.isTerminal();
const paint = (code: number, text: string) => plain ? text : `\x1b[${code}m${text}\x1b[0m`;
const colors = [36, 35, 34, 32];
const names = Object.keys(services);
const width = Math.max(...names.map((name) => name.length));
const levels: Record<string, number> = { warning: 33, error: 31, fatal: 31 };

export function readableLine(service: string, line: string): string {
  const name = paint(colors[names.indexOf(service) % colors.length] ?? 37, service.padEnd(width));
  try {
    const { time, level, service: _, message, ...rest } = JSON.parse(line);
    const more = Object.entries(rest)
      .filter(([, value]) => !String(message).includes(String(value)))
      .map(([key, value]) => `${key}=${printableJson(JSON.stringify(value))}`).join(" ");
    const mark = levels[level] ? paint(levels[level], `${level} `) : "";
    const said = printable(String(message));
    return `${String(time).slice(11, 23)} ${name} ${mark}${said} ${paint(90, more)}`.trimEnd();
  } catch {
    return `${" ".repeat(12)} ${name} ${printable(line)}`;
  }
}
