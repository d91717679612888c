import type { LogLine } from "../../tools/servers/service_process.ts";

export function countLogged(log: LogLine[], message: RegExp): number {
  return log.filter((line) => message.test(line.message)).length;
}
