// What the commands of a recovery have in common.
import type { JetStreamClient } from "nats";
import { SettingsError } from "@kenri/shared/process/settings.ts";
import { reasonOf } from "@kenri/shared/process/reason.ts";
import { connectNats, type NatsServers } from "@kenri/shared/nats/connection.ts";
import { printableLines } from "@kenri/shared/process/printable.ts";

export async function run(command: (say: (line: string) => void) => Promise<void>): Promise<void> {
  // A connection with TLS does not (Deno 2.9.6), and the process would end while it waits for one.
  const staysAlive = setInterval(() => {}, 1_000);
  try {
    // What they say may be what a user wrote.
    await command((line) => console.log(printableLines(line)));
    clearInterval(staysAlive);
  } catch (error) {
    const problems = error instanceof SettingsError ? error.problems : [reasonOf(error)];
    for (const problem of problems) console.error(printableLines(problem));
    Deno.exit(1);
  }
}

export async function withJetStream(
  servers: NatsServers,
  work: (jetStream: JetStreamClient) => Promise<void>,
): Promise<void> {
  const connection = await connectNats(servers, { name: "recovery" });
  try {
    await work(connection.jetstream());
  } finally {
    await connection.close();
  }
}
