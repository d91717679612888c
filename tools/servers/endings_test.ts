// However a process ends, the servers that it started end too.
import { isGone } from "./test_processes.ts";
import { until } from "./wait.ts";
import { root } from "../root.ts";

const ENDINGS: [string, (pid: number) => Promise<void> | void][] = [
  ["kill -9 of the caller", (pid) => Deno.kill(pid, "SIGKILL")],
  ["SIGTERM to the caller", (pid) => Deno.kill(pid, "SIGTERM")],
  // Ctrl-C goes to the whole process group of the terminal.
  ["Ctrl-C", async (pid) => {
    await new Deno.Command("sh", { args: ["-c", `kill -s INT -- -${pid}`] }).output();
  }],
  ["SIGHUP to the caller", (pid) => Deno.kill(pid, "SIGHUP")],
];

for (const [name, end] of ENDINGS) {
  Deno.test(`no server is left after ${name}`, async () => {
    await using caller = await startCaller(
      "await new Promise(() => setInterval(() => {}, 1_000));",
    );
    await end(caller.pid);
    await caller.assertNothingLeft();
  });
}

for (const [name, code] of [["a normal exit", ""], ["a crash", "throw new Error('crash');"]]) {
  Deno.test(`no server is left after ${name} of a caller that did not stop them`, async () => {
    await using caller = await startCaller(code ?? "");
    await caller.assertNothingLeft();
  });
}

/** Another process that starts all servers and a busy backend, and then runs the code. */
async function startCaller(code: string) {
  const module = import.meta.resolve("./servers.ts");
  const script = `
    const { startServers } = await import("${module}");
    const { occupyBackend } = await import("${import.meta.resolve("./test_processes.ts")}");
    const { postgres, nats, redis } = await startServers();
    const pids = [postgres.pid, nats.pid, redis.pid, await occupyBackend(postgres)];
    const folders = [postgres.dataDir, nats.storeDir, redis.dataDir];
    console.log(JSON.stringify({ pids, folders }));
    ${code}
    Deno.exit();
  `;
  const caller = new Deno.Command(Deno.execPath(), {
    args: ["eval", script],
    cwd: root,
    stdout: "piped",
    stderr: "null",
    detached: true,
  }).spawn();
  const output = await readLine(caller.stdout);
  const { pids, folders }: { pids: number[]; folders: string[] } = JSON.parse(output);

  async function assertNothingLeft(): Promise<void> {
    await caller.status;
    await until("all processes are gone", () => pids.every(isGone));
    await until("all folders are removed", async () => {
      return (await Promise.all(folders.map(isRemoved))).every(Boolean);
    });
  }

  return {
    pid: caller.pid,
    assertNothingLeft,
    async [Symbol.asyncDispose]() {
      try {
        caller.kill("SIGKILL");
      } catch { /* Already gone, as it should be. */ }
      await caller.status;
    },
  };
}

function isRemoved(path: string): Promise<boolean> {
  return Deno.lstat(path).then(() => false, () => true);
}

async function readLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (text.includes("\n")) break;
  }
  return text;
}
