// A process of its own for a library, with packages and a lock of its own.
import { fileURLToPath } from "node:url";
import { linesOf } from "../issuer/lines.ts";
import { inTime } from "../servers/wait.ts";
import type { Answer, Command } from "./contender.ts";

export interface LibraryProcess extends AsyncDisposable {
  ask(command: Command): Promise<void>;
}

const fileOf = (name: string) => fileURLToPath(new URL(`libraries/${name}`, import.meta.url));
const args = [
  ...["run", "--quiet", "--no-prompt", "--config", fileOf("deno.json")],
  ...["--allow-net=127.0.0.1", "--allow-env", "--allow-read", "--allow-sys"],
  fileOf("main.ts"),
];
const withinMs = 60_000;

export function startLibraryProcess(): LibraryProcess {
  const child = new Deno.Command(Deno.execPath(), {
    args,
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
    env: { NO_COLOR: "1" },
  }).spawn();
  const answers = linesOf(child.stdout);
  const input = child.stdin.getWriter();
  input.closed.catch(() => {});
  return {
    ask: async (command) => {
      await input.write(new TextEncoder().encode(`${JSON.stringify(command)}\n`));
      const { value, done } = await inTime(`it did "${command.do}"`, answers.next(), withinMs);
      if (done) throw new Error("The process of a library has ended");
      const { error }: Answer = JSON.parse(value);
      if (error !== undefined) throw new Error(error);
    },
    [Symbol.asyncDispose]: async () => {
      await input.close().catch(() => {}); // it ends when its input does
      await child.status;
    },
  };
}
