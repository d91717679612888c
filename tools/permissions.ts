// deno task permissions PROGRAM: prints the flags that a program's settings need. Nothing else is
// needed to start it from the image, whose other flags are the same for all settings; --all prints
// these as well, for a start without the image. It imports no package and needs only --allow-env.
import { permissionFlags, settingFlags } from "../shared/process/program.ts";
import { isProgramName, programs } from "./services.ts";

const [name, all] = Deno.args;
if (!isProgramName(name) || (all !== undefined && all !== "--all")) {
  console.error(`Usage: permissions ${Object.keys(programs).join("|")} [--all]`);
  Deno.exit(2);
}
const flags = all ? permissionFlags : settingFlags;
// A bundle of this file is beside the programs; otherwise their folder in the image is used.
const folder = import.meta.filename?.endsWith(".js") ? import.meta.dirname : "/kenri";
const lines = flags(programs[name].program, (variable) => Deno.env.get(variable), folder ?? "");
console.log(lines.join("\n"));
