import { findNatsServer } from "./find_nats_server.ts";
import { jetStreamAnswers } from "./nats_probe.ts";
import { makeRunFolder, type RunFolder } from "./run_folder.ts";
import { Server, type ServerProgram } from "./server.ts";

export interface NatsOptions {
  /** Absent: a temporary one that goes with the server. */
  storeDir?: string;
  port?: number;
  name?: string;
  /** More lines for the configuration file. */
  settings?: string;
  say?: (line: string) => void;
}

export class NatsServer extends Server {
  readonly storeDir: string;

  constructor(storeDir: string, program: ServerProgram, run: RunFolder, port?: number) {
    super(program, run, port);
    this.storeDir = storeDir;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  /** All streams gone, as after the loss of a disk. The server must be stopped. */
  async wipe(): Promise<void> {
    if (this.isRunning) throw new Error("Stop nats-server before wiping its store");
    for await (const entry of Deno.readDir(this.storeDir)) {
      await Deno.remove(`${this.storeDir}/${entry.name}`, { recursive: true });
    }
  }
}

export async function startNats(options: NatsOptions = {}): Promise<NatsServer> {
  const program = await findNatsServer(options.say);
  const run = await makeRunFolder("nats");
  try {
    const folder = options.storeDir ?? `${run.path}/store`;
    await Deno.mkdir(folder, { recursive: true });
    const storeDir = await Deno.realPath(folder);
    const description = await natsProgram(program, storeDir, run, options);
    const server = new NatsServer(storeDir, description, run, options.port);
    await server.start();
    return server;
  } catch (error) {
    await run.remove();
    throw error;
  }
}

async function natsProgram(
  program: string,
  storeDir: string,
  run: RunFolder,
  options: NatsOptions,
): Promise<ServerProgram> {
  // Unique, so that the probe can't take another process's server on the same port for this one.
  const name = options.name ?? `kenri-${crypto.randomUUID()}`;
  const configFile = `${run.path}/nats.conf`;

  async function args(port: number): Promise<string[]> {
    await Deno.writeTextFile(configFile, config({ ...options, name, storeDir, port }));
    return ["-c", configFile];
  }

  return {
    name: "nats-server",
    program: await Deno.realPath(program),
    workFolder: storeDir,
    args,
    isReady: (port) => jetStreamAnswers(port, name),
    stopSignal: "SIGTERM",
    lastSignal: options.storeDir ? "SIGTERM" : "SIGKILL",
  };
}

/** The limits only keep a runaway test from filling the machine. JSON is valid in this format. */
function config(
  { name, storeDir, port, settings = "" }: NatsOptions & { storeDir: string; port: number },
): string {
  return `
server_name: ${JSON.stringify(name)}
listen: "127.0.0.1:${port}"
jetstream {
  store_dir: ${JSON.stringify(storeDir)}
  max_file_store: 10G
  max_memory_store: 1G
}
${settings}
`;
}
