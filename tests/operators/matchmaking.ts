// Matchmaking for tests of its operators.
import { type Settings, startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { join, joined, type Matchmaking, ticket } from "../support/matchmaking.ts";
import { type Output, runOps } from "./ops.ts";

export const debug = { MATCHMAKING_DEBUG_ENABLED: "true" };
export const noWorker = { MATCHMAKING_WORKER_ENABLED: "false" };

export const ops = ({ url }: { url: string }, ...args: string[]): Promise<Output> =>
  runOps("ops/ops.ts", { matchmaking: { url } }, [
    ...args,
    "--without",
    "entitlement,notification,account,gateway",
  ]);

/** A replica that reaches less than it needs, so it never becomes ready. */
export async function startUnready(settings: Settings): Promise<AsyncDisposable & { url: string }> {
  const replica = await startService("matchmaking", settings);
  return { url: replica.url, [Symbol.asyncDispose]: () => replica.kill().then(() => {}) };
}

/** Its events wait. */
export async function startWithoutNats(
  { settings }: Matchmaking,
): Promise<AsyncDisposable & { url: string }> {
  const more = { NATS_URL: "nats://127.0.0.1:9", MATCHMAKING_WORKER_ENABLED: "true" };
  const alone = await startUnready({ ...settings, ...more });
  await until(
    "it reaches Redis",
    async () => (await join(alone, "zoe", { mode: "rank" })).status === 200,
  );
  return alone;
}

export async function matched(service: { url: string }): Promise<string> {
  const id = await joined(service, "ann");
  await joined(service, "bob");
  await until("ann is matched", async () => {
    const { json } = await ticket(service, "ann", id);
    return json.status === "MATCHED";
  });
  return id;
}
