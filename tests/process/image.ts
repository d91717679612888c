// How the image starts a program: the flags of the Dockerfile, then those of the container's
// command.
import { type ProgramName, programs } from "../../tools/services.ts";
import { type Read, settingFlags } from "../../shared/process/program.ts";

const dockerfile = Deno.readTextFileSync(new URL("../../Dockerfile", import.meta.url));

/** The entry point without the word `deno`. */
export function entryPoint(): string[] {
  const [, list = ""] = /^ENTRYPOINT (\[.*\])$/m.exec(dockerfile.replaceAll("\\\n", " ")) ?? [];
  return JSON.parse(list).slice(1);
}

/** The container's command for these settings. */
export function imageCommand(name: ProgramName, read: Read, folder = "/kenri"): string[] {
  return [...settingFlags(programs[name].program, read, folder), `${name}.js`];
}
