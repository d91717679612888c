import type { JetStreamClient } from "nats";
import { connectNats, type NatsServers } from "../nats/connection.ts";
import { reasonOf } from "./reason.ts";
import { SettingsError } from "./settings.ts";
import { printProblem } from "./terminal.ts";

// A command that an operator starts with the settings of a service, such as `deno task recover`.

export async function runCommand(command: () => Promise<void>): Promise<void> {
  // A TLS connection does not keep the process alive (Deno 2.9.6); a timer does.
  const staysAlive = setInterval(() => {}, 1_000);
  try {
    await command();
    clearInterval(staysAlive);
  } catch (error) {
    const problems = error instanceof SettingsError ? error.problems : [reasonOf(error)];
    for (const problem of problems) printProblem(problem);
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
