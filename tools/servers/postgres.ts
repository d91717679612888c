import { startChild, type User } from "./child.ts";
import { canReach, reachableNativeFolder, unprivilegedUser } from "./postgres_program.ts";
import { makeRunFolder, type RunFolder } from "./run_folder.ts";
import { Server, type ServerProgram } from "./server.ts";

export interface PostgresOptions {
  /** Made and initialised if empty. Absent: a temporary one that goes with the server. */
  dataDir?: string;
  port?: number;
  settings?: Record<string, string>;
  say?: (line: string) => void;
}

/** Durability stays as PostgreSQL has it (`fsync`, `synchronous_commit` on): benchmarks use this. */
const SETTINGS: Record<string, string> = {
  listen_addresses: "127.0.0.1",
  // Its path would have to be short and writable; nothing here connects that way.
  unix_socket_directories: "",
  // In the data folder, not in /dev/shm: a killed server leaves 1 MB behind there, and a container
  // has 64 MB of it in all.
  dynamic_shared_memory_type: "mmap",
  // Each test file holds a few pools at once.
  max_connections: "200",
  shared_buffers: "256MB",
  // In PostgreSQL's order LOG is above ERROR: errors that tests provoke stay out, while starts,
  // recoveries and whatever kept it from starting are told.
  log_min_messages: "log",
  log_checkpoints: "off",
  timezone: "UTC",
  log_timezone: "UTC",
};

export class PostgresServer extends Server {
  readonly dataDir: string;

  constructor(dataDir: string, program: ServerProgram, run: RunFolder, port?: number) {
    super(program, run, port);
    this.dataDir = dataDir;
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.port}/postgres`;
  }
}

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const user = await unprivilegedUser(options.dataDir);
  const native = await reachableNativeFolder(user, options.say ?? (() => {}));
  const run = await makeRunFolder("postgres", user);
  try {
    const dataDir = await prepareDataDir(options.dataDir ?? `${run.path}/data`, native, run, user);
    const program = postgresProgram(native, dataDir, options, user);
    const server = new PostgresServer(dataDir, program, run, options.port);
    await server.start();
    return server;
  } catch (error) {
    await run.remove();
    throw error;
  }
}

function postgresProgram(
  native: string,
  dataDir: string,
  options: PostgresOptions,
  user: User | undefined,
): ServerProgram {
  const settings = Object.entries({ ...SETTINGS, ...options.settings });
  const settingArgs = settings.flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  return {
    name: "PostgreSQL",
    program: `${native}/bin/postgres`,
    workFolder: dataDir,
    user,
    args: (port) => Promise.resolve(["-D", dataDir, "-p", String(port), ...settingArgs]),
    isReady: (_port, pid) => isReady(dataDir, pid),
    // "Fast": open transactions are rolled back. SIGTERM would wait for every client to leave.
    stopSignal: "SIGINT",
    // "Immediate": no checkpoint, but shared memory is given back, which a SIGKILL would leave.
    lastSignal: options.dataDir ? "SIGINT" : "SIGQUIT",
  };
}

/** The postmaster keeps its pid in the first line and its state in the eighth, for `pg_ctl`. */
async function isReady(dataDir: string, pid: number): Promise<boolean> {
  const state = await Deno.readTextFile(`${dataDir}/postmaster.pid`).catch(() => "");
  const lines = state.split("\n");
  return lines[0] === String(pid) && lines[7]?.trim() === "ready";
}

async function prepareDataDir(
  path: string,
  native: string,
  run: RunFolder,
  user: User | undefined,
): Promise<string> {
  await Deno.mkdir(path, { recursive: true, mode: 0o700 });
  const dataDir = await Deno.realPath(path);
  if (user) {
    await Deno.chown(dataDir, user.uid, user.gid);
    if (!await canReach(user, dataDir)) {
      throw new Error(`PostgreSQL runs as uid ${user.uid}, which can't reach "${dataDir}"`);
    }
  }
  const initialised = await Deno.stat(`${dataDir}/PG_VERSION`).then(() => true, () => false);
  if (!initialised) await initdb(dataDir, native, run, user);
  return dataDir;
}

/** The built-in C.UTF-8 sorts the same on every machine, whatever its locales. */
async function initdb(
  dataDir: string,
  native: string,
  run: RunFolder,
  user: User | undefined,
): Promise<void> {
  const child = await startChild({
    program: `${native}/bin/initdb`,
    args: [
      ...["--pgdata", dataDir, "--username", "postgres", "--auth", "trust", "--encoding", "UTF8"],
      ...["--locale-provider", "builtin", "--builtin-locale", "C.UTF-8", "--locale", "C"],
      ...["--no-sync", "--no-instructions"],
    ],
    runFolder: run.path,
    workFolder: dataDir,
    lastSignal: "SIGTERM",
    user,
  });
  if (await child.exited === 0) return;
  throw new Error(`initdb failed in "${dataDir}":\n${await child.lastLines()}`);
}
