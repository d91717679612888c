// deno task graph:check: every program may import only modules of the project and of its packages. The
// tools that compute permissions or start programs may import only modules of the project.
import { fileURLToPath } from "node:url";
import { foreignModules, packagesOf } from "./module_graph.ts";
import { mainFile, type ProgramName, programs } from "./services.ts";

const problems: string[] = [];
for (const name of Object.keys(programs) as ProgramName[]) {
  problems.push(...await foreignModules(mainFile(name)));
}
for (const tool of ["run_service.ts", "permissions.ts", "attached.ts"]) {
  const file = fileURLToPath(new URL(tool, import.meta.url));
  const packages = await packagesOf(file);
  problems.push(
    ...await foreignModules(file),
    ...packages.map((name) => `tools/${tool} must import no package, but imports ${name}`),
  );
}
for (const problem of problems) console.error(problem);
if (problems.length > 0) Deno.exit(1);
