import type { User } from "./child.ts";
import { canReach, unprivilegedUser } from "./other_user.ts";
import { keptPassword, newPassword, passwordOf } from "./password.ts";
import { initdb, requirePassword } from "./postgres_data.ts";
import { findPostgres, type PostgresPrograms } from "./postgres_program.ts";
import { makeRunFolder, type RunFolder } from "./run_folder.ts";
import { Server, type ServerProgram } from "./server.ts";

export interface PostgresOptions {
  /** It is made and initialised if empty. Absent: a temporary one, deleted with the server. */
  dataDir?: string;
  port?: number;
  /** The administrator's password for new data. Absent: a random one. Existing data keeps its own. */
  password?: string;
  settings?: Record<string, string>;
  say?: (line: string) => void;
}

/** Durability stays as PostgreSQL has it (`fsync`, `synchronous_commit` on): benchmarks use this. */
const SETTINGS: Record<string, string> = {
  listen_addresses: "127.0.0.1",
  // Its path would have to be short and writable; nothing here connects that way.
  unix_socket_directories: "",
  // Shared memory is in the data folder and not in /dev/shm: a killed server leaves 1 MB behind
  // there, and a container has 64 MB of it in all.
  dynamic_shared_memory_type: "mmap",
  // Each test file holds a few pools at once.
  max_connections: "200",
  shared_buffers: "256MB",
  // In PostgreSQL's order LOG is above ERROR: the errors that tests cause are left out, while
  // starts, recoveries and reasons for a failed start are logged.
  log_min_messages: "log",
  log_checkpoints: "off",
  timezone: "UTC",
  log_timezone: "UTC",
};

export class PostgresServer extends Server {
  readonly dataDir: string;
  readonly #password: string;

  constructor(
    { dataDir, password }: PreparedData,
    program: ServerProgram,
    run: RunFolder,
    port?: number,
  ) {
    super(program, run, port);
    this.dataDir = dataDir;
    this.#password = password;
  }

  /** The URL of the administrator, with the password. */
  get url(): string {
    return this.urlOf({ database: "postgres" });
  }

  urlOf({ database, user = "postgres", password }: Login): string {
    const own = user === "postgres" ? this.#password : passwordOf(user, this.#password);
    const url = new URL(`postgres://127.0.0.1:${this.port}`);
    url.username = encodeURIComponent(user);
    url.password = encodeURIComponent(password ?? own);
    url.pathname = `/${encodeURIComponent(database)}`;
    return url.href;
  }
}

export interface Login {
  database: string;
  /** Absent: the administrator. */
  user?: string;
  /** Absent: the one that the user has in all urls of this server. */
  password?: string;
}

interface PreparedData {
  dataDir: string;
  password: string;
}

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const user = await unprivilegedUser(options.dataDir);
  const programs = await findPostgres(user, options.say ?? (() => {}));
  const run = await makeRunFolder("postgres", user);
  try {
    const data = await prepareData(options, programs, run, user);
    const program = postgresProgram(programs, data.dataDir, options, user);
    const server = new PostgresServer(data, program, run, options.port);
    await server.start();
    return server;
  } catch (error) {
    await run.remove();
    throw error;
  }
}

function postgresProgram(
  { bin }: PostgresPrograms,
  dataDir: string,
  options: PostgresOptions,
  user: User | undefined,
): ServerProgram {
  const settings = Object.entries({ ...SETTINGS, ...options.settings });
  const settingArgs = settings.flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  return {
    name: "PostgreSQL",
    program: `${bin}/postgres`,
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

async function prepareData(
  options: PostgresOptions,
  programs: PostgresPrograms,
  run: RunFolder,
  user: User | undefined,
): Promise<PreparedData> {
  const kept = options.dataDir !== undefined;
  const path = options.dataDir ?? `${run.path}/data`;
  await Deno.mkdir(path, { recursive: true, mode: 0o700 });
  const dataDir = await Deno.realPath(path);
  if (user) {
    await Deno.chown(dataDir, user.uid, user.gid);
    if (kept && !await canReach(user, dataDir)) {
      throw new Error(`PostgreSQL runs as uid ${user.uid}, which can't reach "${dataDir}"`);
    }
  }
  const initialised = await Deno.stat(`${dataDir}/PG_VERSION`).then(() => true, () => false);
  const known = initialised ? await keptPassword(dataDir, user) : undefined;
  if (known !== undefined) return { dataDir, password: known };
  const password = options.password ?? newPassword();
  const data = { dataDir, password, user, kept };
  await (initialised ? requirePassword(data, programs) : initdb(data, programs, run));
  return { dataDir, password };
}
