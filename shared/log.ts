import { configureSync, getLogger, type Logger, type LogRecord } from "@logtape/logtape";
import { reasonOf } from "./errors.ts";

export type Log = Logger;

// The only place that prints: one JSON object a line, to standard output.
export function startLog(service: string): Log {
  const encoder = new TextEncoder();
  configureSync({
    reset: true,
    sinks: {
      // Written whole and at once, because a line must not be lost with the process that wrote it.
      out: (record) => void Deno.stdout.writeSync(encoder.encode(jsonLine(service, record))),
    },
    loggers: [
      { category: [], sinks: ["out"], lowestLevel: "info" },
      { category: ["logtape", "meta"], sinks: ["out"], lowestLevel: "warning" },
    ],
  });
  return getLogger(service);
}

function jsonLine(service: string, record: LogRecord): string {
  const { properties, timestamp, level, message } = record;
  return JSON.stringify({
    time: new Date(timestamp).toISOString(),
    level,
    service,
    message: message.join(""),
    ...properties,
  }, plainErrors) + "\n";
}

function plainErrors(_key: string, value: unknown): unknown {
  if (value instanceof Error) return reasonOf(value);
  return typeof value === "bigint" ? Number(value) : value;
}
