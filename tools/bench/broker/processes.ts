// Scanner and worker as processes of their own, as the design has them.
import { fileURLToPath } from "node:url";
import { connectTo } from "../../servers/nats_client.ts";
import type { Servers } from "../../servers/servers.ts";
import { type BrokerOptions, makeQueue, streamOf } from "./queue.ts";

export type Part = "scanner" | "worker";

export interface Broker extends AsyncDisposable {
  /** Ends a part with SIGKILL, like a crash, and starts it again. */
  crash(part: Part): Promise<void>;
  /** The number of messages that were ever published. */
  published(): Promise<number>;
}

export async function startBroker(
  { nats }: Servers,
  given: Omit<BrokerOptions, "natsUrl">,
): Promise<Broker> {
  const options: BrokerOptions = { ...given, natsUrl: nats.url };
  const connection = await connectTo(nats.url);
  await makeQueue(connection, options);
  const parts = { scanner: startPart("scanner", options), worker: startPart("worker", options) };
  return {
    crash: async (part) => {
      await kill(parts[part]);
      parts[part] = startPart(part, options);
    },
    published: async () => {
      const manager = await connection.jetstreamManager();
      return (await manager.streams.info(streamOf(options.name))).state.last_seq;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(Object.values(parts).map(kill));
      await connection.close();
    },
  };
}

function startPart(part: Part, options: BrokerOptions): Deno.ChildProcess {
  const program = fileURLToPath(new URL(`${part}.ts`, import.meta.url));
  const args = ["run", "--cached-only", "--no-check", "--allow-all", program];
  return new Deno.Command(Deno.execPath(), {
    args: [...args, JSON.stringify(options)],
    stdin: "null",
    stdout: "null",
  }).spawn();
}

async function kill(process: Deno.ChildProcess): Promise<void> {
  process.kill("SIGKILL");
  await process.status;
}
