import { z } from "zod";

// The kinds of values that a setting can have. A problem quotes the value, unless it may be a
// secret.

// A timer takes at most 2^31 - 1 ms; a longer wait would end at once.
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

// Several durations, separated by commas.
export function durations(): z.ZodPipe<z.ZodString, z.ZodTransform<number[], string>> {
  return text().transform((written, context) => {
    const read = written.split(",").map((one) => duration().safeParse(one.trim()));
    if (read.every(({ success }) => success)) return read.map(({ data }) => data ?? 0);
    context.addIssue(
      `must be durations above zero such as 5s,5m,2h, not ${JSON.stringify(written)}`,
    );
    return z.NEVER;
  });
}

export function text(): z.ZodString {
  return z.string({ error: "is required" }).refine(
    (value) => value.trim() !== "",
    "must not be blank",
  );
}

// The names that NATS accepts for a stream or a durable consumer.
export const natsNamePattern = /^[^\s.*>/\\]+$/;

export function natsName(): z.ZodString {
  return text().regex(natsNamePattern, "must not contain white space or any of . * > / \\");
}

// A subject that can be published to has no wildcards.
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

// One or more keys, separated by commas. A message never repeats them.
export function secretKeys(): z.ZodPipe<z.ZodString, z.ZodTransform<string[], string>> {
  return text().transform((written, context) => {
    const keys = written.split(",");
    if (keys.every((key) => /^[!-~]{32,}$/.test(key))) return keys;
    context.addIssue("must be random text of 32 or more visible ASCII characters without commas");
    return z.NEVER;
  });
}

// One or more keys of 32 bytes, separated by commas. A message never repeats them.
export function encryptionKeys(): z.ZodPipe<z.ZodString, z.ZodTransform<Uint8Array[], string>> {
  return text().transform((written, context) => {
    const keys = written.split(",");
    if (keys.every((key) => /^[A-Za-z0-9_-]{43}=?$/.test(key))) return keys.map(bytesOf);
    context.addIssue("must be 32 random bytes, written as base64url");
    return z.NEVER;
  });
}

function bytesOf(base64url: string): Uint8Array {
  return Uint8Array.fromBase64(base64url, { alphabet: "base64url" });
}

// The message never repeats the value, because it may contain a password.
export function serverUrl(...protocols: string[]): z.ZodString {
  return text().refine(
    (value) => isServerUrl(value, protocols),
    `must be a url, percent-encoded, that begins with ${
      protocols.map((protocol) => `${protocol}//`).join(" or ")
    }`,
  );
}

// The URLs of all servers of a cluster, separated by commas.
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

export interface NamedPage {
  name: string;
  url: string;
}

// The addresses of pages, each with a name before it or without. They are written into links, so
// they must not contain a password.
export function pageUrls(): z.ZodPipe<z.ZodString, z.ZodTransform<NamedPage[], string>> {
  return text().transform((written, context) => {
    const pages = written.split(",").map((page) => readPage(page.trim()));
    if (pages.every((page) => page !== undefined)) return pages;
    context.addIssue("must be a url that begins with http:// or https://, without a password");
    return z.NEVER;
  });
}

function readPage(written: string): NamedPage | undefined {
  const [, name, address = ""] = /^(?:([\w-]+)=)?(.*)$/.exec(written) ?? [];
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || `${url.username}${url.password}` !== "") {
    return undefined;
  }
  return { name: name ?? url.host, url: `${url.origin}${url.pathname}`.replace(/\/$/, "") };
}

// A name, an IPv4 address, or an IPv6 address in brackets. Permissions are made from it, so nothing
// else is accepted.
function isHost(value: string): boolean {
  return /^([\w.-]+|\[.+\])$/.test(value) && URL.canParse(`http://${value}`);
}

export function host(): z.ZodString {
  return text().refine(
    (value) => isHost(value.includes(":") ? `[${value}]` : value),
    "must be a host's name or address, without brackets",
  );
}
