// Functions on processes for the tests of the servers.
import pg from "pg";
import type { PostgresServer } from "./postgres.ts";

/** Starts a backend that never reads a socket or a latch again, and returns its pid. */
export async function occupyBackend(postgres: PostgresServer): Promise<number> {
  const client = new pg.Client({ connectionString: postgres.url });
  client.on("error", () => {});
  await client.connect();
  const { rows } = await client.query("select pg_backend_pid() as pid");
  client.query("do 'begin loop end loop; end'").catch(() => client.end().catch(() => {}));
  return rows[0].pid;
}

/** SIGCONT has no effect on a running process, and fails if none exists. */
export function isGone(pid: number): boolean {
  try {
    Deno.kill(pid, "SIGCONT");
    return false;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return true;
    throw error;
  }
}
