// Programs as in production, except that die_at.ts is loaded before them.
import { fileURLToPath } from "node:url";
import { preloading } from "../../support/preload.ts";
import { type FaultPoint, variable } from "./fault_point.ts";

const dieAt = fileURLToPath(new URL("die_at.ts", import.meta.url));

/** The arguments of `deno run …`, which let the module read one more variable. */
export function doom(args: string[]): string[] {
  return preloading(dieAt, variable, args);
}

export function deathAt(point: FaultPoint): Record<string, string> {
  return { [variable]: JSON.stringify(point) };
}
