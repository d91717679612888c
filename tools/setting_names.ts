// deno task settings:names: writes the names of all settings, as the schemas have them, for the
// launcher, which must know them without the packages that the schemas are made with. With --check
// it only reports a file that is not up to date.
import { fileURLToPath } from "node:url";
import type { z } from "zod";
import { schema as entitlement } from "../entitlement/config.ts";
import { schema as notification } from "../notification/config.ts";
import { schema as provision } from "./provision/config.ts";
import { environmentName } from "../shared/process/program.ts";

const schemas: Record<string, z.ZodObject> = {
  entitlement,
  notification,
  "tools/provision": provision,
};

function fileWith(schema: z.ZodObject): string {
  const names = Object.keys(schema.shape).map(environmentName).sort();
  return [
    "// Written by `deno task settings:names`; do not edit.",
    "export const settings: readonly string[] = [",
    ...names.map((name) => `  "${name}",`),
    "];\n",
  ].join("\n");
}

const isCheck = Deno.args.includes("--check");
for (const [folder, schema] of Object.entries(schemas)) {
  const file = fileURLToPath(new URL(`../${folder}/setting_names.ts`, import.meta.url));
  const wanted = fileWith(schema);
  if (!isCheck) {
    await Deno.writeTextFile(file, wanted);
  } else if (await Deno.readTextFile(file) !== wanted) {
    console.error(`${folder}/setting_names.ts is not up to date: run "deno task settings:names"`);
    Deno.exitCode = 1;
  }
}
