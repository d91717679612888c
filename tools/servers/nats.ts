import { findNatsServer } from "./find_nats_server.ts";
import { type Credentials, jetStreamAnswers } from "./nats_probe.ts";
import { newPassword } from "./password.ts";
import { makeRunFolder, type RunFolder } from "./run_folder.ts";
import { Server, type ServerProgram } from "./server.ts";

export interface NatsOptions {
  /** Absent: a temporary one that goes with the server. */
  storeDir?: string;
  port?: number;
  name?: string;
  /** The password of the only user. Absent: a random one. */
  password?: string;
  /** Lines of the configuration in place of the only user: others, or none. The url names no user then. */
  users?: string;
  /** More lines for the configuration file. */
  settings?: string;
  say?: (line: string) => void;
}

export class NatsServer extends Server {
  readonly storeDir: string;
  readonly #credentials: Credentials | undefined;

  constructor(
    storeDir: string,
    credentials: Credentials | undefined,
    program: ServerProgram,
    run: RunFolder,
    port?: number,
  ) {
    super(program, run, port);
    this.storeDir = storeDir;
    this.#credentials = credentials;
  }

  /** The URL with the user and the password, unless the configuration names other users. */
  get url(): string {
    const url = new URL(`nats://127.0.0.1:${this.port}`);
    if (this.#credentials) {
      url.username = encodeURIComponent(this.#credentials.user);
      url.password = encodeURIComponent(this.#credentials.pass);
    }
    return url.href;
  }

  /** Deletes all streams, like the loss of a disk. The server must be stopped. */
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
    const credentials = options.users === undefined
      ? { user: "kenri", pass: options.password ?? newPassword() }
      : undefined;
    const description = await natsProgram(program, storeDir, run, credentials, options);
    const server = new NatsServer(storeDir, credentials, description, run, options.port);
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
  credentials: Credentials | undefined,
  options: NatsOptions,
): Promise<ServerProgram> {
  // Unique, so that the probe can't take another process's server on the same port for this one.
  const name = options.name ?? `kenri-${crypto.randomUUID()}`;
  const configFile = `${run.path}/nats.conf`;

  async function args(port: number): Promise<string[]> {
    const users = credentials ? onlyUser(credentials) : options.users ?? "";
    const text = config({ ...options, name, storeDir, port, users });
    await Deno.writeTextFile(configFile, text, { mode: 0o600 });
    return ["-c", configFile];
  }

  return {
    name: "nats-server",
    program: await Deno.realPath(program),
    workFolder: storeDir,
    args,
    isReady: (port) => jetStreamAnswers(port, name, credentials),
    stopSignal: "SIGTERM",
    lastSignal: options.storeDir ? "SIGTERM" : "SIGKILL",
  };
}

function onlyUser({ user, pass }: Credentials): string {
  return `authorization { user: ${JSON.stringify(user)}, password: ${JSON.stringify(pass)} }`;
}

interface Configured {
  name: string;
  storeDir: string;
  port: number;
  users: string;
  settings?: string;
}

/** The limits only keep a runaway test from filling the machine. JSON is valid in this format. */
function config({ name, storeDir, port, users, settings = "" }: Configured): string {
  return `
server_name: ${JSON.stringify(name)}
listen: "127.0.0.1:${port}"
jetstream {
  store_dir: ${JSON.stringify(storeDir)}
  max_file_store: 10G
  max_memory_store: 1G
}
${users}
${settings}
`;
}
