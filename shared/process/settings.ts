import { z } from "zod";
import type { Backoff } from "../queue/backoff.ts";

// Settings are read once, at start. A key is written `entitlement.outbox.poll-interval`, and its
// environment name is the key in capitals with `.` and `-` as `_`.

export function environmentName(key: string): string {
  return key.toUpperCase().replaceAll(/[.-]/g, "_");
}

export const environment = (name: string): string | undefined => Deno.env.get(name);

export class SettingsError extends Error {
  override readonly name = "SettingsError";

  readonly problems: string[];

  constructor(problems: string[]) {
    super(`Settings can't be used: ${problems.join("; ")}`);
    this.problems = problems;
  }
}

// All that is wrong is reported at once, each by its environment name.
export function parseSettings<Schema extends z.ZodObject>(
  schema: Schema,
  read: (name: string) => string | undefined,
): z.output<Schema> {
  const given = Object.keys(schema.shape).map((key) => [key, read(environmentName(key))] as const);
  const parsed = schema.safeParse(
    Object.fromEntries(given.filter(([, value]) => value !== undefined)),
  );
  if (parsed.success) return parsed.data;
  // One problem of each setting: what is blank is not a url either.
  const problems = new Map<string, string>();
  for (const { path, message } of parsed.error.issues) {
    const name = environmentName(path.join("."));
    if (!problems.has(name)) problems.set(name, `${name} ${message}`);
  }
  throw new SettingsError([...problems.values()]);
}

// Timers take 2^31 - 1 ms at most; a longer wait would end at once.
export const maxTimerMs = 2 ** 31 - 1;

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const durationPattern = /^(\d{1,9})(ms|s|m|h|d)$/;

// In milliseconds; written `200ms`, `1s`, `2m`, `24h`, `30d`.
export function duration(
  maxMs = 3650 * unitMs.d,
): z.ZodPipe<z.ZodString, z.ZodTransform<number, string>> {
  return text().transform((written, context) => {
    const [, count, unit] = durationPattern.exec(written) ?? [];
    const ms = Number(count) * unitMs[unit as keyof typeof unitMs];
    if (ms > 0 && ms <= maxMs) return ms;
    const problem = ms > maxMs
      ? "is too long"
      : "must be a duration above zero such as 200ms, 1s, 2m, 24h or 30d";
    context.addIssue(`${problem}, not ${JSON.stringify(written)}`);
    return z.NEVER;
  });
}

export function text(): z.ZodString {
  return z.string({ error: "is required" }).refine(
    (value) => value.trim() !== "",
    "must not be blank",
  );
}

// As NATS takes it for a stream or a durable.
export const natsNamePattern = /^[^\s.*>/\\]+$/;

export function natsName(): z.ZodString {
  return text().regex(natsNamePattern, "must not contain white space or any of . * > / \\");
}

// One that can be published to: without wildcards.
export function natsSubject(): z.ZodString {
  return text().regex(/^[^\s.*>]+(\.[^\s.*>]+)*$/, "must be names joined by dots, without * and >");
}

export function number(
  { min, max, whole = true }: { min: number; max: number; whole?: boolean },
): z.ZodPipe<z.ZodString, z.ZodTransform<number, string>> {
  return text().transform((written, context) => {
    const value = /^\d+(\.\d+)?$/.test(written) ? Number(written) : NaN;
    if (value >= min && value <= max && (!whole || Number.isInteger(value))) return value;
    context.addIssue(
      `must be a ${whole ? "whole " : ""}number from ${min} to ${max}, not ${
        JSON.stringify(written)
      }`,
    );
    return z.NEVER;
  });
}

export const count = (): ReturnType<typeof number> => number({ min: 1, max: 1_000_000 });
export const port = (): ReturnType<typeof number> => number({ min: 0, max: 65_535 });

export function flag(): z.ZodPipe<z.ZodString, z.ZodTransform<boolean, string>> {
  return text().transform((written, context) => {
    if (written === "true" || written === "false") return written === "true";
    context.addIssue(`must be true or false, not ${JSON.stringify(written)}`);
    return z.NEVER;
  });
}

// One or several, with commas between them. They are never repeated in a message.
export function secretKeys(): z.ZodPipe<z.ZodString, z.ZodTransform<string[], string>> {
  return text().transform((written, context) => {
    const keys = written.split(",");
    if (keys.every((key) => /^[!-~]{32,}$/.test(key))) return keys;
    context.addIssue("must be random text of 32 or more visible ASCII characters without commas");
    return z.NEVER;
  });
}

// The value itself is never repeated in the message: a connection string holds a password.
export function serverUrl(...protocols: string[]): z.ZodString {
  return text().refine(
    (value) => isServerUrl(value, protocols),
    `must be a url, percent-encoded, that begins with ${
      protocols.map((protocol) => `${protocol}//`).join(" or ")
    }`,
  );
}

// One for each server of a cluster, with commas between them.
export function serverUrls(...protocols: string[]): z.ZodString {
  return text().refine(
    (value) => value.split(",").every((url) => isServerUrl(url, protocols)),
    `must be urls, percent-encoded, that begin with ${
      protocols.map((protocol) => `${protocol}//`).join(" or ")
    }, with commas between them`,
  );
}

function isServerUrl(value: string, protocols: string[]): boolean {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  return url !== undefined && protocols.includes(url.protocol) && isHost(url.hostname) &&
    !/\s/.test(value) && [url.username, url.password, url.pathname].every(isDecodable);
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

// Where people find a page; with a path or without. It is written into links, so a password in it
// would be shown.
export function pageUrl(): z.ZodPipe<z.ZodString, z.ZodTransform<string, string>> {
  return text().transform((written, context) => {
    const url = URL.canParse(written) ? new URL(written) : undefined;
    const isPage = url && /^https?:$/.test(url.protocol) && `${url.username}${url.password}` === "";
    if (isPage) return `${url.origin}${url.pathname}`.replace(/\/$/, "");
    context.addIssue("must be a url that begins with http:// or https://, without a password");
    return z.NEVER;
  });
}

// A name, an IPv4 address, or an IPv6 address, which stands in brackets in a url. Permissions are
// made of it, so nothing else may slip in.
function isHost(value: string): boolean {
  return /^([\w.-]+|\[.+\])$/.test(value) && URL.canParse(`http://${value}`);
}

export function host(): z.ZodString {
  return text().refine(
    (value) => isHost(value.includes(":") ? `[${value}]` : value),
    "must be a host's name or address, without brackets",
  );
}

type Prefixed<Prefix extends string, Shape> = {
  [Key in keyof Shape & string as `${Prefix}.${Key}`]: Shape[Key];
};

// The same settings under the name of a service or a worker.
export function prefixed<Prefix extends string, Shape extends z.ZodRawShape>(
  prefix: Prefix,
  shape: Shape,
): Prefixed<Prefix, Shape> {
  const entries = Object.entries(shape).map(([key, schema]) => [`${prefix}.${key}`, schema]);
  return Object.fromEntries(entries) as Prefixed<Prefix, Shape>;
}

const factor = (): ReturnType<typeof number> => number({ min: 0, max: 100, whole: false });

export const workerSettings = {
  "poll-interval": duration(maxTimerMs).prefault("1s"),
  "batch-size": number({ min: 1, max: 5_000 }).prefault("200"),
  "lease": duration(maxTimerMs).prefault("30s"),
  "max-attempts": count().prefault("10"),
  "backoff-base": duration().prefault("1s"),
  "backoff-max": duration().prefault("60s"),
  "backoff-min": duration().prefault("1s"),
  "backoff-jitter-min": factor().prefault("0.5"),
  "backoff-jitter-max": factor().prefault("1.5"),
};

export interface WorkerOptions {
  pollIntervalMs: number;
  batchSize: number;
  leaseMs: number;
  maxAttempts: number;
  backoff: Backoff;
}

export function workerOptions(
  setting: (name: keyof typeof workerSettings) => number,
): WorkerOptions {
  return {
    pollIntervalMs: setting("poll-interval"),
    batchSize: setting("batch-size"),
    leaseMs: setting("lease"),
    maxAttempts: setting("max-attempts"),
    backoff: {
      baseMs: setting("backoff-base"),
      maxMs: setting("backoff-max"),
      minMs: setting("backoff-min"),
      jitterMin: setting("backoff-jitter-min"),
      jitterMax: setting("backoff-jitter-max"),
    },
  };
}

// A check of two settings against each other, made also while others are wrong.
export function notAbove<Low extends string, High extends string>(
  low: Low,
  high: High,
): z.core.$ZodCheck<Record<Low | High, number>> {
  return z.refine<Record<Low | High, number>>((value) => !isAbove(value[low], value[high]), {
    path: [low],
    message: `must not be above ${environmentName(high)}`,
    when: () => true,
  });
}

// What could not be read is still the text that was given.
function isAbove(low: unknown, high: unknown): boolean {
  return typeof low === "number" && typeof high === "number" && low > high;
}
