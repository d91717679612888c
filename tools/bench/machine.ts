// Facts about the machine, which the figures depend on.
import { connectTo } from "../servers/nats_client.ts";
import type { Servers } from "../servers/servers.ts";
import { withClient } from "../servers/asking.ts";

export async function machineFacts({ postgres, nats }: Servers): Promise<Record<string, string>> {
  const connection = await connectTo(nats.url);
  const version = await withClient(
    postgres.url,
    async (owner) => (await owner.query("show server_version")).rows[0].server_version,
  );
  const facts = {
    processor: processor(),
    cores: `${navigator.hardwareConcurrency}`,
    memory: `${Math.round(Deno.systemMemoryInfo().total / 2 ** 30)} GiB`,
    system: `${Deno.build.os} ${Deno.osRelease()}`,
    fsync: `${await fsyncMs()} ms (median of 200 writes of 8 KiB)`,
    "load average at the start": `${Deno.loadavg()[0]?.toFixed(1)}`,
    deno: Deno.version.deno,
    postgresql: version,
    "nats-server": connection.info?.version ?? "",
  };
  await connection.close();
  return facts;
}

function processor(): string {
  try {
    const name = /^model name\s*: (.*)$/m.exec(Deno.readTextFileSync("/proc/cpuinfo"))?.[1];
    return name ?? Deno.build.arch;
  } catch {
    return Deno.build.arch;
  }
}

async function fsyncMs(): Promise<string> {
  const path = await Deno.makeTempFile({ prefix: "kenri-bench-" });
  const page = new Uint8Array(8_192);
  const times: number[] = [];
  {
    using file = await Deno.open(path, { write: true });
    for (let i = 0; i < 200; i++) {
      file.writeSync(page);
      const from = performance.now();
      file.syncDataSync();
      times.push(performance.now() - from);
    }
  }
  await Deno.remove(path);
  return (times.sort((a, b) => a - b)[100] as number).toFixed(2);
}
