import { findRedisServer } from "./find_redis_server.ts";
import { newPassword } from "./password.ts";
import { redisCommand } from "./redis_client.ts";
import { makeRunFolder, type RunFolder } from "./run_folder.ts";
import { Server, type ServerProgram } from "./server.ts";

export interface RedisOptions {
  /** Absent: a temporary one that goes with the server. */
  dataDir?: string;
  port?: number;
  /** Absent: a random one. */
  password?: string;
  /** Without it, all data is gone when the server ends. By default it is kept. */
  appendonly?: boolean;
  /** Absent: every second, which is Redis' own default. */
  appendfsync?: "always" | "everysec" | "no";
  /** More lines for the configuration file. They override the others. */
  settings?: string;
  say?: (line: string) => void;
}

export class RedisServer extends Server {
  readonly dataDir: string;
  readonly #password: string;

  constructor(
    dataDir: string,
    password: string,
    program: ServerProgram,
    run: RunFolder,
    port?: number,
  ) {
    super(program, run, port);
    this.dataDir = dataDir;
    this.#password = password;
  }

  /** The URL of the default user, with the password. */
  get url(): string {
    return urlOf(this.port, this.#password);
  }

  /** Deletes everything, like the loss of a disk. The server must be stopped. */
  async wipe(): Promise<void> {
    if (this.isRunning) throw new Error("Stop redis-server before wiping its data");
    for await (const entry of Deno.readDir(this.dataDir)) {
      await Deno.remove(`${this.dataDir}/${entry.name}`, { recursive: true });
    }
  }
}

export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const program = await findRedisServer(options.say);
  const run = await makeRunFolder("redis");
  try {
    const folder = options.dataDir ?? `${run.path}/data`;
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
    const dataDir = await Deno.realPath(folder);
    const password = options.password ?? newPassword();
    const description = await redisProgram(program, dataDir, run, password, options);
    const server = new RedisServer(dataDir, password, description, run, options.port);
    await server.start();
    return server;
  } catch (error) {
    await run.remove();
    throw error;
  }
}

async function redisProgram(
  program: string,
  dataDir: string,
  run: RunFolder,
  password: string,
  options: RedisOptions,
): Promise<ServerProgram> {
  const configFile = `${run.path}/redis.conf`;

  async function args(port: number): Promise<string[]> {
    const text = config({ ...options, dataDir, port, password });
    await Deno.writeTextFile(configFile, text, { mode: 0o600 });
    return [configFile];
  }

  return {
    name: "redis-server",
    program: await Deno.realPath(program),
    workFolder: dataDir,
    args,
    isReady: (port, pid) => hasLoaded(urlOf(port, password), pid),
    stopSignal: "SIGTERM",
    lastSignal: options.dataDir ? "SIGTERM" : "SIGKILL",
  };
}

function urlOf(port: number, password: string): string {
  return `redis://:${encodeURIComponent(password)}@127.0.0.1:${port}`;
}

/** It answers INFO while it still reads its data, and another process may have the port. */
async function hasLoaded(url: string, pid: number): Promise<boolean> {
  const info = await redisCommand(url, "INFO").catch(() => "");
  const lines = `${info}`.split("\r\n");
  return lines.includes(`process_id:${pid}`) && lines.includes("loading:0");
}

interface Configured extends RedisOptions {
  dataDir: string;
  port: number;
  password: string;
}

/**
 * Of two lines for one setting the last counts. Each test takes a logical database of its own, and
 * snapshots would only be a second copy of the data that the log of commands has.
 */
function config(options: Configured): string {
  const { dataDir, port, password, appendonly = true, appendfsync = "everysec" } = options;
  return `
bind 127.0.0.1
port ${port}
requirepass ${JSON.stringify(password)}
dir ${JSON.stringify(dataDir)}
databases 4096
save ""
appendonly ${appendonly ? "yes" : "no"}
appendfsync ${appendfsync}
${options.settings ?? ""}
`;
}
