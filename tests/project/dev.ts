// Starts `deno task dev` as a developer does, with ports and a data folder of its own.
import { keep } from "../../tools/servers/evidence.ts";
import assert from "node:assert/strict";
import { freePort } from "../../tools/servers/free_port.ts";
import type { Settings } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { root } from "../../tools/root.ts";

export interface Dev extends AsyncDisposable {
  pid: number; // of the task, and of the process group
  output: { text: string };
  exited: Promise<number>;
  account: string;
  entitlement: string;
  notification: string;
  gateway: string;
  issuer: string;
  receiver: string; // the page that shows webhooks
  ready(): Promise<void>;
  // Sends the signal to the whole process group, as a terminal does.
  pressCtrlC(): Promise<void>;
}

export interface DataFolder extends AsyncDisposable {
  path: string;
  /** Another clone, with its data in its own default folder. */
  clone?: string;
}

export async function dataFolder(): Promise<DataFolder> {
  const path = await Deno.makeTempDir({ prefix: "kenri-dev-" });
  await Deno.chmod(path, 0o755); // PostgreSQL may have to run as another user
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

export function startDev(folder: DataFolder, settings: Settings = {}, args: string[] = []): Dev {
  const ports = {
    ACCOUNT_HTTP_PORT: `${freePort()}`,
    ENTITLEMENT_HTTP_PORT: `${freePort()}`,
    GATEWAY_HTTP_PORT: `${freePort()}`,
    MATCHMAKING_HTTP_PORT: `${freePort()}`,
    NOTIFICATION_HTTP_PORT: `${freePort()}`,
    SENDER_HTTP_PORT: `${freePort()}`,
    KENRI_ISSUER_PORT: `${freePort()}`,
    KENRI_RECEIVER_PORT: `${freePort()}`,
  };
  const given = { ...ports, ...settings };
  const child = new Deno.Command(Deno.execPath(), {
    args: ["task", "dev", ...args],
    cwd: folder.clone ?? root,
    env: { ...given, ...(folder.clone ? {} : { KENRI_DATA: folder.path }), NO_COLOR: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    detached: true,
  }).spawn();
  const output = { text: "" };
  const follow = async (stream: ReadableStream<Uint8Array>) => {
    for await (const text of stream.pipeThrough(new TextDecoderStream() as never)) {
      output.text += text;
      keep("dev", String(text));
    }
  };
  const read = Promise.all([follow(child.stdout), follow(child.stderr)]);
  const exited = Promise.all([child.status, read]).then(([{ code }]) => code);
  let ended = false;
  void exited.then(() => ended = true);
  const ready = () =>
    until("the banner is shown", () => {
      assert.ok(!ended, output.text);
      return output.text.includes("Ctrl-C stops everything");
    }, 60_000);
  return {
    pid: child.pid,
    output,
    exited,
    account: `http://127.0.0.1:${given.ACCOUNT_HTTP_PORT}`,
    entitlement: `http://127.0.0.1:${given.ENTITLEMENT_HTTP_PORT}`,
    notification: `http://127.0.0.1:${given.NOTIFICATION_HTTP_PORT}`,
    gateway: `http://127.0.0.1:${given.GATEWAY_HTTP_PORT}`,
    issuer: `http://127.0.0.1:${given.KENRI_ISSUER_PORT}`,
    receiver: `http://127.0.0.1:${given.KENRI_RECEIVER_PORT}`,
    ready,
    pressCtrlC: async () => {
      await new Deno.Command("sh", { args: ["-c", `kill -s INT -- -${child.pid}`] }).output();
    },
    [Symbol.asyncDispose]: async () => {
      try {
        child.kill("SIGKILL");
      } catch { /* It has ended already. */ }
      await exited;
      await until("nothing is left of it", async () => (await processesOf(folder)).length === 0);
    },
  };
}

/** The processes that have the folder's name in their arguments, working folder or environment. */
export async function processesOf({ path }: DataFolder): Promise<string[]> {
  const found: string[] = [];
  for await (const { name } of Deno.readDir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const [command = "", environment, cwd] = await Promise.all([
      Deno.readTextFile(`/proc/${name}/cmdline`),
      Deno.readTextFile(`/proc/${name}/environ`),
      Deno.readLink(`/proc/${name}/cwd`),
    ]).catch(() => ["", "", ""]); // ended meanwhile, or not ours to look at
    if (`${command} ${environment} ${cwd}`.includes(path)) {
      found.push(`${name} ${command.replaceAll("\0", " ").slice(0, 100)}`);
    }
  }
  return found;
}
