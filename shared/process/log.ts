import { configureSync, getLogger, type Logger } from "@logtape/logtape";
import { createHash } from "node:crypto";
import { z } from "zod";
import { reasonOf } from "./reason.ts";
import { printableJson } from "./printable.ts";

export type Log = Logger;

// User ids are personal data, and not everybody who reads the log may see them.
const userIds = ["shown", "hashed", "hidden"] as const;
export type UserIds = typeof userIds[number];

export const logSettings = {
  "log.user-ids": z.enum(userIds, {
    error: ({ input }) => `must be ${userIds.join(" or ")}, not ${JSON.stringify(input)}`,
  }).prefault("shown").describe(
    "User ids in the log: `shown`, `hashed` (SHA-256) or `hidden`, see [privacy.md](privacy.md)",
  ),
};

// The only place that prints: one JSON object a line, to standard output.
export function startLog(service: string, userIds: UserIds = "shown"): Log {
  started = { service, userIds };
  configureSync({
    reset: true,
    sinks: { out: ({ level, message, properties }) => print(level, message.join(""), properties) },
    loggers: [
      { category: [], sinks: ["out"], lowestLevel: "info" },
      { category: ["logtape", "meta"], sinks: ["out"], lowestLevel: "warning" },
    ],
  });
  return getLogger(service);
}

// The same as `info` of the log, for what is written thousands of times per second: the message has no
// placeholders.
export function writeLine(message: string, properties: Record<string, unknown>): void {
  print("info", message, properties);
}

let started: { service: string; userIds: UserIds } | undefined;

function print(level: string, message: string, properties: Record<string, unknown>): void {
  if (!started) return;
  const { service, userIds } = started;
  const time = new Date().toISOString();
  const line = { time, level, service, message, ...aboutUser(properties, userIds) };
  // A line may be read on a terminal.
  const json = printableJson(JSON.stringify(line, isPlain(line) ? undefined : plainErrors));
  if (lines === "") queueMicrotask(writeLines);
  lines += `${json}\n`;
}

// The lines of one turn of the event loop are written together at its end, before anything else happens:
// a line must not be lost with the process that wrote it.
const encoder = new TextEncoder();
let lines = "";

function writeLines(): void {
  let bytes = encoder.encode(lines);
  lines = "";
  try {
    while (bytes.length > 0) bytes = bytes.subarray(Deno.stdout.writeSync(bytes));
  } catch {
    // Nobody reads the log any more. To report that would be a line of the log, without end.
  }
}

// An error that nobody catches, and Deno.exit, end the process within the turn.
for (const end of ["error", "unload"]) addEventListener(end, writeLines);

// Most lines are, and a replacer would be called for each of their values.
function isPlain(line: Record<string, unknown>): boolean {
  for (const name in line) {
    const type = typeof line[name];
    if (type === "object" || type === "bigint") return false;
  }
  return true;
}

function aboutUser(
  properties: Record<string, unknown>,
  userIds: UserIds,
): Record<string, unknown> {
  if (userIds === "shown") return properties;
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, value]) => {
      if (value === undefined || !namesUsers.test(name)) return [[name, value]];
      if (userIds === "hidden") return [];
      return [[`${name}_sha256`, Array.isArray(value) ? value.map(sha256) : sha256(value)]];
    }),
  );
}

const namesUsers = /(^|_)user_ids?$/; // user_id, and lists such as peer_user_ids

function sha256(value: unknown): string {
  return createHash("sha256").update(`${value}`).digest("hex");
}

function plainErrors(_key: string, value: unknown): unknown {
  if (value instanceof Error) return reasonOf(value);
  return typeof value === "bigint" ? Number(value) : value;
}
