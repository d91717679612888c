import type { ParseArgsOptionsConfig } from "node:util";
import type { Service } from "./service.ts";

// What a command of `deno task ops` is, and how it ends.

export interface Command {
  usage: string;
  words: number; // that may follow its name, besides options
  summary: string;
  help: string;
  options: ParseArgsOptionsConfig;
  run(call: Call): Promise<Result>;
}

export interface Call {
  entitlement: Service;
  notification: Service;
  positionals: string[];
  values: Record<string, string | boolean | undefined>;
}

export interface Result {
  problem: boolean; // exit code 1: there is something to do for a person
  json: unknown;
  text: string;
}

/** Exit code 2: it was called wrongly, and nothing was done. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Of every command that changes something. */
export const changeOptions: ParseArgsOptionsConfig = {
  "who": { type: "string" },
  "reason": { type: "string" },
  "dry-run": { type: "boolean", default: false },
};

export const changeHelp = `
  --dry-run     show what would be done, and do nothing
  --reason WHY  required: it is recorded, and whoever comes next will be glad of it
  --who NAME    who does it; else your user's name`;

export function changeFields(
  { values }: Call,
): { who: string; reason: string; dry_run: boolean } {
  const who = text(values["who"]) ?? Deno.env.get("USER") ?? Deno.env.get("LOGNAME") ?? "";
  const dry_run = values["dry-run"] === true;
  const reason = text(values["reason"]) ?? (dry_run ? "a dry run" : "");
  if (who === "") throw new UsageError("--who is required: there is no user's name to take");
  if (reason === "") throw new UsageError("--reason is required: say why, for the record");
  return { who, reason, dry_run };
}

export function text(value: string | boolean | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}

export function wholeNumber(call: Call, name: string, max: number): number | undefined {
  const written = text(call.values[name]);
  if (written === undefined) return undefined;
  const value = /^\d+$/.test(written) ? Number(written) : NaN;
  if (value >= 0 && value <= max) return value;
  throw new UsageError(`--${name} must be a whole number up to ${max}, not "${written}"`);
}

const unitMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A time such as 2026-01-02T03:04:05Z, or how long ago, such as 90m. */
export function moment(name: string, written: string): string {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(written) ?? [];
  if (count) {
    return new Date(Date.now() - Number(count) * unitMs[unit as keyof typeof unitMs])
      .toISOString();
  }
  if (/^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$/.test(written) && !isNaN(Date.parse(written))) {
    return written;
  }
  throw new UsageError(
    `--${name} must be a time such as 2026-01-02T03:04:05Z, or how long ago, such as 90m, ` +
      `not "${written}"`,
  );
}
