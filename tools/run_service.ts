// deno task migrate, provision, or the name of a service: runs one of them in the foreground with the
// permissions that follow from its settings, and no others. Signals and the exit code pass through.
//
// This process may start Deno with any permission, so it imports no package (`deno task graph:check`).
// It reads no setting but addresses and paths; the program itself checks them all.
import { foreignModules } from "./module_graph.ts";
import { isProgramName, mainFile, programs, runArguments } from "./services.ts";

Deno.addSignalListener("SIGUSR1", () => {}); // without a listener Deno would open a debugger
const name = Deno.args[0];
if (!isProgramName(name)) {
  console.error(`The program must be one of ${Object.keys(programs).join(", ")}`);
  Deno.exit(1);
}
const foreign = await foreignModules(mainFile(name));
if (foreign.length > 0) {
  for (const problem of foreign) console.error(problem);
  Deno.exit(1);
}

const args = runArguments(name, (variable) => Deno.env.get(variable));
const program = new Deno.Command(Deno.execPath(), { args: [...args, ...Deno.args.slice(1)] })
  .spawn();
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
  Deno.addSignalListener(signal, () => program.kill(signal));
}
// `deno task`, which runs this, may be killed without a signal to this process.
const starter = Deno.ppid;
const watch = setInterval(() => {
  if (Deno.ppid === starter) return;
  clearInterval(watch);
  program.kill("SIGTERM");
}, 500);
Deno.exit((await program.status).code);
