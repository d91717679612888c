// Programs as in production, but with die_at.ts before them.
import { fileURLToPath } from "node:url";
import { runArguments } from "../../../tools/services.ts";
import type { Program } from "../../../tools/servers/service_process.ts";
import { type FaultPoint, variable } from "./fault_point.ts";

const preload = `--preload=${fileURLToPath(new URL("die_at.ts", import.meta.url))}`;

export const doomed: Program = {
  arguments: (name, read) => doom(runArguments(name, read)),
};

/** The arguments of `deno run …`; the one variable more is what the module reads. */
export function doom([run = "", ...others]: string[]): string[] {
  const allow = `--allow-env=${variable},`;
  return [run, preload, ...others.map((flag) => flag.replace(/^--allow-env=/, allow))];
}

export function deathAt(point: FaultPoint): Record<string, string> {
  return { [variable]: JSON.stringify(point) };
}
