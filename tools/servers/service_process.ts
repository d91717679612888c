// The real services as processes of their own, with the permissions they get in production.
import { environmentName } from "../../shared/process/program.ts";
import { keep } from "./evidence.ts";
import { runArguments, type ServiceName } from "../services.ts";

export type Settings = Record<string, string>;

export interface LogLine extends Record<string, unknown> {
  level: string;
  message: string;
}

export interface ServiceProcess extends AsyncDisposable {
  url: string;
  pid: number;
  log: LogLine[];
  exited: Promise<number>;
  signal(signal: Deno.Signal): void;
  // Stops it with SIGTERM, and returns its exit code.
  stop(): Promise<number>;
  // Ends it with SIGKILL, like a crash.
  kill(): Promise<void>;
}

export interface Program {
  arguments(name: ServiceName, read: (variable: string) => string | undefined): string[];
  cwd?: string;
}

const fromSources: Program = { arguments: runArguments };

// Starts the service, by default on any free port, and waits until it listens.
export function startService(
  name: ServiceName,
  settings: Settings,
  program: Program = fromSources,
): Promise<ServiceProcess> {
  const given = { [`${environmentName(name)}_HTTP_PORT`]: "0", ...settings };
  const args = program.arguments(name, (variable) => given[variable]);
  return startProgram(name, args, given, program.cwd);
}

/** The same for a service that is not listed. */
export async function startProgram(
  name: string,
  args: string[],
  settings: Settings,
  cwd?: string,
): Promise<ServiceProcess> {
  const child = new Deno.Command(Deno.execPath(), {
    args,
    ...(cwd === undefined ? {} : { cwd }),
    env: { ...settings, NO_COLOR: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const log: LogLine[] = [];
  const listening = Promise.withResolvers<string>();
  const reading = readLines(child.stdout, (line) => {
    log.push(line);
    if (line.message.startsWith("Listening on ")) listening.resolve(String(line["url"]));
  }).then(() => listening.reject(new Error(`${name} ended: ${JSON.stringify(log)}`)));
  const exited = Promise.all([child.status, reading]).then(([{ code }]) => code);
  listening.promise.catch(() => {});
  const signal = (which: Deno.Signal) => {
    try {
      child.kill(which);
    } catch { /* It has ended already. */ }
  };
  const stop = () => {
    signal("SIGTERM");
    return exited;
  };
  const kill = async () => {
    signal("SIGKILL");
    await exited;
  };
  const url = await listening.promise;
  return { url, pid: child.pid, log, exited, signal, stop, kill, [Symbol.asyncDispose]: kill };
}

async function readLines(
  stdout: ReadableStream<Uint8Array>,
  take: (line: LogLine) => void,
): Promise<void> {
  let rest = "";
  for await (const text of stdout.pipeThrough(new TextDecoderStream() as never)) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      keep("services", line);
      take(JSON.parse(line));
    }
  }
}
