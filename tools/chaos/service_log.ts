// The log lines of all replicas, in their order.
import type { Stall } from "./stalls.ts";

export interface LogLine {
  /** Its number in the file, from 1. */
  number: number;
  pid: number;
  at: number;
  level: string;
  message: string;
  text: string;
}

export interface SendLine {
  pid: number;
  at: number;
  line: number;
  notification_id: string;
  event_id: string;
  user_id: string;
  stock_keeping_unit: string;
  version: number;
}

export interface ServiceLog {
  lines: LogLine[];
  /** The sends that the channel logged. */
  sends: SendLine[];
  /** The stalls of single replicas. */
  stalls: (Stall & { pid: number })[];
  /** Lines that the logger did not write, such as the error that ended a process. */
  strays: string[];
}

export async function readServiceLog(file: string): Promise<ServiceLog> {
  return parseServiceLog(await Deno.readTextFile(file).catch(() => ""));
}

export function parseServiceLog(text: string): ServiceLog {
  const log: ServiceLog = { lines: [], sends: [], stalls: [], strays: [] };
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const parsed = parse(line);
    if (!parsed) {
      log.strays.push(line);
      continue;
    }
    const { pid, at, level, message } = parsed as unknown as LogLine;
    log.lines.push({ number: index + 1, pid, at, level, message, text: line });
    if (message.startsWith("Notification ")) {
      log.sends.push({ ...parsed as unknown as SendLine, line: index + 1 });
    }
    if (message === "Stood still") log.stalls.push(parsed as unknown as ServiceLog["stalls"][0]);
  }
  return log;
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const parsed = JSON.parse(line);
    return typeof parsed.message === "string" ? parsed : undefined;
  } catch {
    return undefined;
  }
}
