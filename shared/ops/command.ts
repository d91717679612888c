import type { ParseArgsOptionsConfig } from "node:util";
import type { ServiceApi, Unreachable } from "./service_api.ts";

// What each command of `deno task ops` declares, and what it returns.

export interface Command<Asked> {
  usage: string;
  words: number; // maximum number of arguments after its name, besides options
  summary: string;
  help: string;
  options: ParseArgsOptionsConfig;
  run(asked: Asked, call: Call): Promise<Result>;
}

/** A command that a service adds. It asks only this service. */
export type OwnCommand = Command<ServiceApi>;

export interface Call {
  user: string | undefined; // of this machine
  positionals: string[];
  values: Values;
}

export type Values = Record<string, string | boolean | undefined>;

export interface Result {
  problem: boolean; // exit code 1: a person should act
  json: unknown;
  text: string;
  unreachable?: Unreachable[]; // the services that are missing in it: exit code 3
}

/** Exit code 2: the arguments are wrong, and nothing was changed. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The options of every command that changes something. */
export const changeOptions: ParseArgsOptionsConfig = {
  "who": { type: "string" },
  "reason": { type: "string" },
  "dry-run": { type: "boolean", default: false },
};

export function changeHelp(reason = "required"): string {
  return `
  --dry-run       show what would be changed, and change nothing
  --reason WHY    recorded with the change; ${reason}
  --who NAME      who makes the change; default: your user name. The name of a credential replaces it`;
}

export function changeFields(
  { user, values }: Call,
): { who: string; reason: string; dry_run: boolean } {
  const who = text(values["who"]) ?? user ?? "";
  const dry_run = values["dry-run"] === true;
  const reason = text(values["reason"]) ?? (dry_run ? "a dry run" : "");
  if (who === "") throw new UsageError("--who is required, because USER and LOGNAME are not set");
  if (reason === "") throw new UsageError("--reason is required: it is recorded with the change");
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

/** A time such as 2026-01-02T03:04:05Z, or an age such as 90m. */
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
    `--${name} must be a time such as 2026-01-02T03:04:05Z, or an age such as 90m, ` +
      `not "${written}"`,
  );
}
