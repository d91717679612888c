import { runArguments, type ServiceName } from "../services.ts";
import { readableLine } from "./readable_log.ts";
import type { Settings } from "./settings.ts";

// One service as a child process with a readable log, restarted when its sources change.
export class RunningService {
  readonly #name: ServiceName;
  readonly #settings: Settings;
  #process: Deno.ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();

  constructor(name: ServiceName, settings: Settings) {
    this.#name = name;
    this.#settings = settings;
  }

  isAffectedBy(changed: Set<string>): boolean {
    return changed.has(this.#name) || changed.has("shared") || changed.has("proto");
  }

  // Resolves with the url on which it listens, or with none if it ended before.
  async start(): Promise<string | undefined> {
    const read = (name: string) => this.#settings[name] ?? Deno.env.get(name);
    const child = new Deno.Command(Deno.execPath(), {
      args: runArguments(this.#name, read),
      env: { ...this.#settings, NO_COLOR: "1" },
      stdin: "null",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#process = child;
    const listening = Promise.withResolvers<string>();
    this.#ended = this.#follow(child, listening.resolve);
    return await Promise.race([listening.promise, this.#ended.then(() => undefined)]);
  }

  async #follow(child: Deno.ChildProcess, onListening: (url: string) => void): Promise<void> {
    let rest = "";
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream() as never)) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        console.log(readableLine(this.#name, line));
        const [, url] = /"Listening on ([^"]+)"/.exec(line) ?? [];
        if (url) onListening(url);
      }
    }
    const { code } = await child.status;
    this.#process = undefined;
    if (code !== 0) {
      console.error(`${this.#name} ended with code ${code}; it restarts when a file changes`);
    }
  }

  async stop(): Promise<void> {
    try {
      this.#process?.kill("SIGTERM");
    } catch { /* It has ended already: Ctrl-C reaches it as well. */ }
    await this.#ended;
  }

  async restart(): Promise<void> {
    console.log(`${this.#name} restarts with the changed files`);
    await this.stop();
    await this.start();
  }
}
