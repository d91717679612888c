import { MINDER } from "./minder.ts";

/** The user a program runs as. Absent: the caller's own. */
export interface User {
  uid: number;
  gid: number;
}

export interface ChildOptions {
  program: string;
  args: string[];
  /** Contains the log and all other files of this run; see run_folder.ts. */
  runFolder: string;
  /** The program's working folder. Only this program may work in it. */
  workFolder: string;
  /** Ends the program when the caller ends. */
  lastSignal: Deno.Signal;
  user?: User | undefined;
}

/** A program that never outlives the process that started it. */
export interface Child {
  /** The program itself, not its minder: tests send it SIGKILL and SIGSTOP. */
  readonly pid: number;
  /** The exit code; 128 + n after signal n. */
  readonly exited: Promise<number>;
  /** Sends a signal and waits until the program and its own children are gone. */
  end(signal: Deno.Signal): Promise<void>;
  /** Undoes `unref`. */
  ref(): void;
  /** Lets the caller end when it has nothing else to do; the program then ends too. */
  unref(): void;
  lastLines(): Promise<string>;
}

export async function startChild(options: ChildOptions): Promise<Child> {
  const minder = new Deno.Command("sh", {
    args: [
      ...["-c", MINDER, "minder", options.runFolder, options.workFolder],
      ...[bare(options.lastSignal), options.program, ...options.args],
    ],
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
    detached: true,
    ...options.user,
    ...apart(),
  }).spawn();
  const lifeline = minder.stdin.getWriter();
  // The pipe breaks when the program ends by itself, which `exited` reports.
  lifeline.closed.catch(() => {});
  const exited = minder.status.then(async ({ code }) => {
    await lifeline.close().catch(() => {});
    return code;
  });

  async function end(signal: Deno.Signal): Promise<void> {
    minder.ref();
    await lifeline.write(new TextEncoder().encode(`${bare(signal)}\n`)).catch(() => {});
    await exited;
  }

  const pid = Number(await firstLine(minder.stdout));
  const logFile = `${options.runFolder}/log`;
  return {
    pid,
    exited,
    end,
    ref: () => minder.ref(),
    unref: () => minder.unref(),
    lastLines: () => lastLines(logFile),
  };
}

/**
 * The caller's environment (`PG*`, `LC_*`) must not affect a server, nor must its working folder, which
 * another user may not be able to enter.
 */
export function apart(): { cwd: string; clearEnv: true; env: Record<string, string> } {
  const path = Deno.env.get("PATH") ?? "/usr/bin:/bin";
  return { cwd: "/", clearEnv: true, env: { PATH: path, LC_ALL: "C" } };
}

function bare(signal: Deno.Signal): string {
  return signal.replace("SIG", "");
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (text.includes("\n")) break;
  }
  return text.trim();
}

/** The server writes to a file, because a pipe that nobody reads would block it. */
async function lastLines(logFile: string): Promise<string> {
  const log = await Deno.readTextFile(logFile).catch(() => "");
  return log.trimEnd().split("\n").slice(-20).join("\n");
}
