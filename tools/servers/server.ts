import { type Child, startChild, type User } from "./child.ts";
import { freePort } from "./free_port.ts";
import type { RunFolder } from "./run_folder.ts";

/** How one kind of server is started, recognised as ready, and stopped. */
export interface ServerProgram {
  name: string;
  program: string;
  workFolder: string;
  user?: User | undefined;
  args(port: number): Promise<string[]>;
  /** Must be sure that exactly this process answers on the port. */
  isReady(port: number, pid: number): Promise<boolean>;
  stopSignal: Deno.Signal;
  /** Ends it when the caller ends or closes it. Data that is thrown away needs no clean stop. */
  lastSignal: Deno.Signal;
}

/** Recovery after a kill may have a lot to read; a server that takes longer than this is stuck. */
const READY_WITHIN_MS = 60_000;

/**
 * The port or the data is still in use. Usually by the server of a caller that was just ended and
 * started again (`--watch`), so it's worth a short wait.
 */
const TAKEN = /address already in use|lock file .* already exists|shared memory block .* in use/i;
const PREDECESSOR_GONE_WITHIN_MS = 3_000;

export class Server implements AsyncDisposable {
  readonly #program: ServerProgram;
  readonly #run: RunFolder;
  #child: Child | undefined;
  #port: number;
  #running = false;

  protected constructor(program: ServerProgram, run: RunFolder, port: number | undefined) {
    this.#program = program;
    this.#run = run;
    this.#port = port ?? 0;
  }

  get port(): number {
    return this.#port;
  }

  /** The address for printing, because the url has a password. */
  get address(): string {
    return `${this.#program.name} at 127.0.0.1:${this.#port}`;
  }

  /** The id of the server process. It stays the same after the process has ended. */
  get pid(): number {
    return this.#started().pid;
  }

  /** The exit code of the current run. A caller that awaits it does not end before the server. */
  get exited(): Promise<number> {
    const child = this.#started();
    child.ref();
    return child.exited;
  }

  get isRunning(): boolean {
    return this.#running;
  }

  /** Without a given port it takes a free one, and keeps it for later starts. */
  async start(): Promise<void> {
    if (this.#running) throw new Error(`${this.#program.name} is running already`);
    const deadline = Date.now() + PREDECESSOR_GONE_WITHIN_MS;
    for (;;) {
      const port = this.#port || freePort();
      const failure = await this.#startOn(port);
      if (failure === undefined) {
        this.#port = port;
        return;
      }
      if (!TAKEN.test(failure) || Date.now() > deadline) {
        throw new Error(`${this.#program.name} did not start on port ${port}:\n${failure}`);
      }
      if (this.#port !== 0) await pause(100);
    }
  }

  /** Clean stop. The data stays; `start` may follow. */
  async stop(): Promise<void> {
    await this.#child?.end(this.#program.stopSignal);
  }

  /** SIGKILL, as in a crash. The data stays; `start` may follow. */
  async kill(): Promise<void> {
    await this.#child?.end("SIGKILL");
  }

  /** Ends it for good and removes what was temporary. */
  async close(): Promise<void> {
    await this.#child?.end(this.#program.lastSignal);
    await this.#run.remove();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #started(): Child {
    if (!this.#child) throw new Error(`${this.#program.name} was never started`);
    return this.#child;
  }

  /** Returns the server's own error if it does not start. */
  async #startOn(port: number): Promise<string | undefined> {
    const { program, workFolder, lastSignal, user } = this.#program;
    const args = await this.#program.args(port);
    await Deno.remove(`${this.#run.path}/log`).catch(() => {});
    const runFolder = this.#run.path;
    const child = await startChild({ program, args, runFolder, workFolder, lastSignal, user });
    this.#child = child;
    this.#running = true;
    child.exited.then(() => this.#running = false);

    const deadline = Date.now() + READY_WITHIN_MS;
    while (!await this.#program.isReady(port, child.pid)) {
      if (!this.#running) return await child.lastLines();
      if (Date.now() > deadline) {
        await child.end("SIGKILL");
        return `not ready within ${READY_WITHIN_MS} ms\n${await child.lastLines()}`;
      }
      await pause(5);
    }
    child.unref();
    return undefined;
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
