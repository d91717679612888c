// A backup of a database server is a copy of its data folder, made while the server is stopped.
import type { PostgresServer } from "../../tools/servers/postgres.ts";

export interface Backup extends AsyncDisposable {
  restore(): Promise<void>;
}

export async function backUp(server: PostgresServer): Promise<Backup> {
  const folder = await Deno.makeTempDir();
  await server.stop();
  await copy(server.dataDir, folder);
  await server.start();
  const restore = async () => {
    await server.kill();
    for await (const { name } of Deno.readDir(server.dataDir)) {
      await Deno.remove(`${server.dataDir}/${name}`, { recursive: true });
    }
    await copy(folder, server.dataDir);
    await server.start();
  };
  return { restore, [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }) };
}

async function copy(from: string, to: string): Promise<void> {
  const { success } = await new Deno.Command("cp", { args: ["-a", `${from}/.`, to] }).output();
  if (!success) throw new Error(`"${from}" could not be copied`);
}
