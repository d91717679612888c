// One replica of a service: a process that is started again when it ends, as an orchestrator would do.
import type { Ports } from "./replica_settings.ts";
import { freeze } from "./freeze.ts";
import type { ChaosService } from "./system.ts";

export interface Run {
  replica: string;
  pid: number;
  from: number;
  until: number | undefined;
  asked: "nothing" | "SIGTERM" | "SIGKILL";
  askedAt: number;
  code: number | undefined;
}

const preload = new URL("replica_preload.ts", import.meta.url).href;
/** Far longer than the services' shutdown grace. */
const stopWithinMs = 20_000;
const againAfterMs = 500;

export class Replica {
  readonly name: string;
  readonly url: string;
  readonly runs: Run[] = [];
  readonly #service: ChaosService;
  readonly #settings: Record<string, string>;
  readonly #logFile: string;
  #ended: Promise<void> = Promise.resolve();
  #isWanted = false;

  constructor(name: string, service: ChaosService, ports: Ports, logFile: string) {
    this.name = name;
    this.url = `http://127.0.0.1:${ports.http}`;
    this.#service = service;
    this.#settings = service.settings(ports);
    this.#logFile = logFile;
  }

  start(): void {
    this.#isWanted = true;
    const [command = "", ...args] = this.#service.arguments((name) => this.#settings[name]);
    // All replicas append to one file, whose order is the order of their log lines.
    const child = new Deno.Command("sh", {
      args: [
        ...["-c", 'exec "$@" >>"$0" 2>&1', this.#logFile],
        ...[Deno.execPath(), command, `--preload=${preload}`, ...args],
      ],
      env: { ...this.#settings, HOSTNAME: this.name, NO_COLOR: "1" },
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    const run: Run = {
      replica: this.name,
      pid: child.pid,
      from: Date.now(),
      until: undefined,
      asked: "nothing",
      askedAt: 0,
      code: undefined,
    };
    this.runs.push(run);
    this.#ended = child.status.then(({ code }) => {
      run.until = Date.now();
      run.code = code;
      if (!this.#isWanted) return;
      setTimeout(() => this.#isWanted && this.runs.at(-1) === run && this.start(), againAfterMs);
    });
  }

  async end(how: "SIGTERM" | "SIGKILL"): Promise<void> {
    this.#isWanted = false;
    const run = this.runs.at(-1);
    if (!run || run.until) return;
    run.asked = how;
    run.askedAt = Date.now();
    this.signal(how);
    const late = setTimeout(() => this.signal("SIGKILL"), stopWithinMs);
    await this.#ended;
    clearTimeout(late);
  }

  signal(signal: Deno.Signal): void {
    const run = this.runs.at(-1);
    if (!run || run.until) return;
    try {
      Deno.kill(run.pid, signal);
    } catch { /* It ended this moment. */ }
  }

  async freeze(forMs: number): Promise<void> {
    const run = this.runs.at(-1);
    if (!run || run.until) return;
    await freeze(run.pid, forMs);
  }

  async answers(path: "/livez" | "/readyz"): Promise<boolean> {
    try {
      const response = await fetch(`${this.url}${path}`, { signal: AbortSignal.timeout(2_000) });
      await response.body?.cancel();
      return response.ok;
    } catch {
      return false;
    }
  }
}
