// Programs as in production, except that die_at.ts is loaded before them.
import { fileURLToPath } from "node:url";
import { runArguments } from "../../../tools/services.ts";
import type { Program } from "../../../tools/servers/service_process.ts";
import { type FaultPoint, variable } from "./fault_point.ts";

const preload = `--preload=${fileURLToPath(new URL("die_at.ts", import.meta.url))}`;

export const doomed: Program = {
  arguments: (name, read) => doom(runArguments(name, read)),
};

/** The arguments of `deno run …`, which let the module read one more variable. */
export function doom([run = "", ...others]: string[]): string[] {
  const allow = `--allow-env=${variable},`;
  return [run, preload, ...others.map((flag) => flag.replace(/^--allow-env=/, allow))];
}

export function deathAt(point: FaultPoint): Record<string, string> {
  return { [variable]: JSON.stringify(point) };
}
