// What every service uses while it has nothing to do.
import { memoryOf } from "../servers/memory.ts";
import type { Servers } from "../servers/servers.ts";
import { startService } from "../servers/service_process.ts";
import { matchmakingSettings, startBoth } from "./both.ts";
import { startGatewayStage } from "./gateway_stage.ts";
import { startSender } from "./orders_drain.ts";
import { idleUse } from "./usage.ts";

const names = ["entitlement", "notification", "account", "gateway", "matchmaking", "sender"];

export const idleBounds: Record<string, number> = Object.fromEntries(
  names.flatMap((name) => [
    [`${name} idle % of a core`, 1],
    [`${name} idle queries/s`, 3],
    [`${name} MiB`, 160],
  ]),
);

/** Before they have done anything, so that the work of autovacuum does not count as theirs. */
export async function idleUseOfAll(servers: Servers): Promise<Record<string, number>> {
  await using both = await startBoth(servers, "idle");
  await using stage = await startGatewayStage(servers, "idle_gateway", { people: 1 });
  await using matchmaking = await startService(
    "matchmaking",
    matchmakingSettings(servers, "idle_matches", 4),
  );
  const { sender } = await startSender();
  await using _sender = sender;
  const pids = {
    entitlement: both.one("entitlement").pid,
    notification: both.one("notification").pid,
    account: stage.account.pid,
    gateway: stage.gateways[0]?.pid ?? NaN,
    matchmaking: matchmaking.pid,
    sender: sender.pid,
  };
  const databases: Record<string, string> = {
    entitlement: both.entitlement.ownerUrl,
    notification: both.notification.ownerUrl,
    account: stage.ownerUrl,
  };
  const figures = await Promise.all(
    Object.entries(pids).map(([name, pid]) => idleUse(name, pid, databases[name])),
  );
  const memory = Object.entries(pids).map(([name, pid]) => [
    `${name} MiB`,
    memoryOf(pid).peakMebibytes,
  ]);
  return Object.assign({}, ...figures, Object.fromEntries(memory));
}
