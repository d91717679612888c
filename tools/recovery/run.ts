// What the commands of a recovery have in common.
import { connect, type JetStreamClient } from "nats";
import { SettingsError } from "../../shared/config.ts";
import { reasonOf } from "../../shared/errors.ts";
import { serverOptions } from "../../shared/jetstream.ts";

export async function run(command: (say: (line: string) => void) => Promise<void>): Promise<void> {
  try {
    await command((line) => console.log(line));
  } catch (error) {
    const problems = error instanceof SettingsError ? error.problems : [reasonOf(error)];
    for (const problem of problems) console.error(problem);
    Deno.exit(1);
  }
}

export async function withJetStream(
  url: string,
  work: (jetStream: JetStreamClient) => Promise<void>,
): Promise<void> {
  const connection = await connect({ ...serverOptions(url), name: "recovery", reconnect: false });
  try {
    await work(connection.jetstream());
  } finally {
    await connection.close();
  }
}
