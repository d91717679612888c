// deno task provision: makes the streams and the durable consumers of all services, or brings them
// to the settings. It needs a NATS user with that permission; the services only verify them. It is
// safe at any time, any number of times. With --users it prints the users for the names in the
// settings.
import { ErrorCode, type JetStreamManager, NatsError } from "nats";
import { setTimeout as sleep } from "node:timers/promises";
import { ensureAdvisories, ensureInbox } from "../../shared/inbox/durables.ts";
import { SettingsError } from "../../shared/process/settings.ts";
import { reasonOf } from "../../shared/process/reason.ts";
import { StartRefused } from "../../shared/process/start_refused.ts";
import { readWithin } from "../../shared/process/program.ts";
import { connectNats } from "../../shared/nats/connection.ts";
import type { NatsUse } from "../../shared/nats/nats_use.ts";
import { ensureStream, NotPermitted } from "../../shared/nats/streams.ts";
import { type ProvisionConfig, readConfig } from "./config.ts";
import { program } from "./program.ts";
import { usersFile } from "./users.ts";

type Say = (line: string) => void;

// Servers are often started together with this, and a cluster first has to choose a leader.
const defaultWaitMs = 30_000;
const retryMs = 500;
const finalCodes: string[] = [ErrorCode.AuthorizationViolation, ErrorCode.PermissionsViolation];

export async function provision(
  config: ProvisionConfig,
  say: Say,
  waitMs = defaultWaitMs,
): Promise<void> {
  const until = performance.now() + waitMs;
  for (let reported = false;; reported = true) {
    try {
      return await provisionOnce(config, say);
    } catch (error) {
      if (isFinal(error) || performance.now() > until) throw error;
      if (!reported) say(`Waiting for NATS: ${reasonOf(error)}`);
      await sleep(retryMs);
    }
  }
}

async function provisionOnce(config: ProvisionConfig, say: Say): Promise<void> {
  const connection = await connectNats(config.nats, { name: "provision", timeout: 3_000 });
  try {
    const manager = await connection.jetstreamManager();
    for (const use of Object.values(config.uses)) await ensureAll(manager, use, say);
  } finally {
    await connection.close();
  }
}

async function ensureAll(
  manager: JetStreamManager,
  { streams = [], inboxes = [] }: NatsUse,
  say: Say,
): Promise<void> {
  for (const stream of streams) {
    await ensureStream(manager, stream);
    say(ready(stream.name));
  }
  for (const inbox of inboxes) {
    await ensureInbox(manager, inbox);
    say(ready(inbox.stream.name, inbox.consumer.durable));
    for (const advisory of inbox.advisories) {
      await ensureAdvisories(manager, advisory);
      say(ready(advisory.stream.name, advisory.durable));
    }
  }
}

function ready(stream: string, durable?: string): string {
  const consumer = durable === undefined ? "" : `, and its consumer ${JSON.stringify(durable)}`;
  return `Stream ${JSON.stringify(stream)}${consumer}: exists with the wanted settings`;
}

function isFinal(error: unknown): boolean {
  return error instanceof StartRefused || error instanceof SettingsError ||
    error instanceof NatsError && finalCodes.includes(error.code);
}

function problemsOf(error: unknown): string[] {
  if (error instanceof SettingsError) return error.problems;
  if (!(error instanceof NotPermitted)) return [reasonOf(error)];
  return [`${error.problem}, and the user in NATS_PROVISION_URL may not change that`];
}

if (import.meta.main) {
  // A connection with TLS does not keep the process alive (Deno 2.9.6), which would end while it
  // waits.
  const staysAlive = setInterval(() => {}, 1_000);
  try {
    const config = readWithin(program, readConfig, (name) => Deno.env.get(name));
    if (Deno.args.includes("--users")) console.log(usersFile(config).trimEnd());
    else await provision(config, console.log);
  } catch (error) {
    for (const problem of problemsOf(error)) console.error(problem);
    Deno.exit(1);
  }
  clearInterval(staysAlive);
}
