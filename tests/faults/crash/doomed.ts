// Programs as in production, except that die_at.ts is loaded before them.
import { fileURLToPath } from "node:url";
import { type FaultPoint, variable } from "./fault_point.ts";

const preload = `--preload=${fileURLToPath(new URL("die_at.ts", import.meta.url))}`;

/** The arguments of `deno run …`, which let the module read one more variable. */
export function doom([run = "", ...others]: string[]): string[] {
  const allow = `--allow-env=${variable},`;
  return [run, preload, ...others.map((flag) => flag.replace(/^--allow-env=/, allow))];
}

export function deathAt(point: FaultPoint): Record<string, string> {
  return { [variable]: JSON.stringify(point) };
}
