// One run: the stack and its clients, the faults of the plan, quiet, and then the check.
import { pause } from "../../shared/process/signals.ts";
import { countRows } from "../servers/asking.ts";
import { durable, pointsDurable } from "../load/stage.ts";
import { readMatchStore } from "./invariants/match_tables.ts";
import { readAccountTables } from "./invariants/account_tables.ts";
import type { OwnerUrls } from "./invariants/invariants.ts";
import { readAllTables, unrest } from "./invariants/tables.ts";
import { type AccountLoad, startAccountLoad } from "./account_clients.ts";
import { check } from "./checker.ts";
import { type Load, startLoad } from "./clients.ts";
import { type Evidence, readGivenUp, readMatches, readSaid } from "./evidence.ts";
import { type Healing, unread, untilHealed } from "./heal.ts";
import { endAllFaults, injectFaults } from "./inject.ts";
import { type MatchLoad, startMatchLoad } from "./match_clients.ts";
import { Messages, type Poison } from "./messages.ts";
import { planOf, type PlanOptions, targetsOf, textOf } from "./plan.ts";
import { isGood, type Report, reportOf, textOfFigures, textOfInvariants } from "./report.ts";
import { plainReceiver } from "./receivers.ts";
import {
  accountStream,
  matchDurable,
  matchStream,
  pointsSubject,
  stream,
  subject,
} from "./replica_settings.ts";
import { readServiceLog } from "./service_log.ts";
import { type Stack, startStack } from "./stack.ts";
import { type Stall, watchStalls } from "./stalls.ts";
import { kenri } from "./system.ts";
import { timelinesOf } from "./timeline.ts";
import { Wipes } from "./wipes.ts";

export interface RunOptions extends Omit<PlanOptions, "targets"> {
  changesPerSecond: number;
  users: number | undefined;
  /** Gets the plan, the log of all services, the report, and the violations. */
  folder: string;
  say: (line: string) => void;
  /** Does not print single faults. */
  quiet: boolean;
  stop: AbortSignal;
}

export interface ChaosOwners extends OwnerUrls {
  account: string;
}

export async function run(options: RunOptions): Promise<Report> {
  const { seed, minutes, folder, say, quiet, stop } = options;
  const plan = planOf({ ...options, targets: targetsOf(kenri) });
  await Deno.writeTextFile(`${folder}/plan.txt`, plan.map(textOf).join("\n"));
  const logFile = `${folder}/services.log`;
  await using stack = await startStack(kenri, logFile);
  const owners = {
    entitlement: stack.ownerUrl("entitlement"),
    notification: stack.ownerUrl("notification"),
    account: stack.ownerUrl("account"),
  };
  const stalls: Stall[] = [];
  const stopWatching = watchStalls((stall) => stalls.push(stall), Date.now);
  await stack.receivers.register(stack.replica("notification-1").url);
  const messages = new Messages(stack.nats.server.url, seed);
  const { load, accounts, players } = startLoads(stack, options);
  const wipes = new Wipes();
  const { injected, done } = injectFaults(
    plan,
    { stack, messages, wipes },
    stop,
    quiet ? () => {} : say,
  );
  const from = performance.now();
  await Promise.all([done, pause(minutes * 60_000, stop)]);
  const minutesDone = Math.round((performance.now() - from) / 6_000) / 10;

  say("All faults are over");
  await endAllFaults(stack);
  const healing = await heal(stack, [load, accounts, players], messages.poison, owners);
  const tables = await readAllTables(owners.entitlement, owners.notification);
  const said = await readSaid(stack);
  await Promise.all(stack.replicas.map((replica) => replica.end("SIGTERM")));
  stopWatching();

  const evidence: Evidence = {
    requests: load.requests,
    tables,
    accounts,
    accountTables: await readAccountTables({
      ...{ ownerUrl: owners.account, natsUrl: stack.nats.server.url, stream: accountStream },
    }),
    matches: await readMatches(stack, players, wipes),
    givenUp: await readGivenUp(owners.notification),
    log: await readServiceLog(logFile),
    injected,
    healing,
    stalls,
    poison: messages.poison,
    received: stack.receivers.received,
    runs: stack.replicas.flatMap(({ runs }) => runs),
    said,
  };
  const ended = { seed, minutes: minutesDone, evidence, sentAgain: messages.sentAgain };
  const report = reportOf(ended, check(evidence));
  await keepReport(folder, report);
  if (!isGood(report)) {
    await keepEvidence(folder, evidence);
    const timelines = await timelinesOf(report.invariants, evidence, owners);
    await Deno.writeTextFile(`${folder}/violations.txt`, timelines);
    say(`\n${timelines}\n\nThe plan:\n${plan.map(textOf).join("\n")}`);
  }
  return report;
}

function startLoads(
  stack: Stack,
  { changesPerSecond, users, seed }: RunOptions,
): { load: Load; accounts: AccountLoad; players: MatchLoad } {
  const load = startLoad({
    urls: stack.clientUrls("entitlement"),
    orders: {
      urls: stack.clientUrls("notification"),
      to: stack.receivers.urlOf(plainReceiver),
    },
    ...{ changesPerSecond, users, seed },
  });
  const accounts = startAccountLoad({
    accounts: stack.clientUrls("account"),
    gateways: stack.clientUrls("gateway"),
    seed,
  });
  const players = startMatchLoad({ urls: stack.clientUrls("matchmaking"), seed });
  return { load, accounts, players };
}

/** Waits until all requests are answered and all work is finished. */
async function heal(
  stack: Stack,
  loads: Pick<Load, "finish" | "abandon">[],
  poison: Poison[],
  { entitlement, notification, account }: ChaosOwners,
): Promise<Healing> {
  let clientsDone = false;
  const finished = Promise.all(loads.map((load) => load.finish())).then(() => clientsDone = true);
  const healing = await untilHealed(stack, [
    () => clientsDone ? undefined : "clients have requests without an answer",
    async () => {
      const restless = await unrest(entitlement, notification);
      return restless && JSON.stringify(restless);
    },
    async () => {
      const waiting = await countRows(account, "outbox_events where unfinished");
      return waiting === 0 ? undefined : `${waiting} events of accounts are not published`;
    },
    async () => {
      const { tickets, unpublished } = await readMatchStore(stack.redis.server.url);
      const queued = tickets.filter(({ status }) => status === "QUEUED").length;
      if (queued + unpublished.length === 0) return undefined;
      return `${queued} tickets wait, ${unpublished.length} events of tickets are not published`;
    },
    () => unread(stack, { stream: matchStream, durable: matchDurable }),
    // Messages that the database refuses are redelivered for minutes before they are dead letters.
    ...([[durable, subject], [pointsDurable, pointsSubject]] as const).map(
      ([durable, on]) => () => {
        const left = poison.filter((one) => one.kind === "refused" && one.on === on).length;
        return unread(stack, { stream, durable, left });
      },
    ),
  ]);
  for (const load of loads) load.abandon();
  await finished;
  return healing;
}

async function keepReport(folder: string, report: Report): Promise<void> {
  const text = `${textOfInvariants(report.invariants)}\n\n${textOfFigures(report.figures)}\n`;
  await Deno.writeTextFile(`${folder}/report.txt`, text);
  await Deno.writeTextFile(`${folder}/report.json`, JSON.stringify(report, null, 2));
}

async function keepEvidence(folder: string, evidence: Evidence): Promise<void> {
  for (
    const name of [
      ...["requests", "tables", "injected", "stalls", "poison", "givenUp", "runs"] as const,
      ...["received", "accounts", "accountTables", "matches"] as const,
    ]
  ) {
    await Deno.writeTextFile(`${folder}/${name}.json`, JSON.stringify(evidence[name], null, 1));
  }
}
