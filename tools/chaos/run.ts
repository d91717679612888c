// One run: the stack and its clients, the faults of the plan, quiet, and then the check.
import { readAllTables } from "../../tests/invariants/tables.ts";
import { check } from "./checker.ts";
import { startLoad } from "./clients.ts";
import { type Evidence, readGivenUp } from "./evidence.ts";
import { untilHealed } from "./heal.ts";
import { injectFaults, liftAll } from "./inject.ts";
import { Messages } from "./messages.ts";
import { planOf, type PlanOptions, textOf } from "./plan.ts";
import { type Report, reportOf, textOfFigures, textOfInvariants } from "./report.ts";
import { readServiceLog } from "./service_log.ts";
import { startStack } from "./stack.ts";
import { timelinesOf } from "./timeline.ts";

export interface RunOptions extends PlanOptions {
  changesPerSecond: number;
  /** Keeps the plan, the log of all services, the report, and what was violated. */
  folder: string;
  say: (line: string) => void;
  stop: AbortSignal;
}

export async function run(options: RunOptions): Promise<Report> {
  const { seed, minutes, changesPerSecond, folder, say, stop } = options;
  const plan = planOf(options);
  const keep = (name: string, text: string) => Deno.writeTextFile(`${folder}/${name}`, `${text}\n`);
  await keep("plan.txt", plan.map(textOf).join("\n"));
  const logFile = `${folder}/services.log`;
  await using stack = await startStack(logFile);
  const messages = new Messages(stack.nats.server.url, seed);
  const load = startLoad({ urls: stack.clientUrls, changesPerSecond, seed });
  const { injected, done } = injectFaults(plan, stack, messages, stop, say);
  await Promise.all([done, pause(minutes * 60_000, stop)]);

  say("All faults are over");
  await liftAll(stack);
  let clientsDone = false;
  const finished = load.finish().then(() => clientsDone = true);
  const healing = await untilHealed(stack, messages.poison, () => clientsDone);
  load.abandon();
  await finished;
  const tables = await readAllTables(stack.owners.entitlement, stack.owners.notification);
  const replicas = Object.values(stack.replicas);
  await Promise.all(replicas.map((replica) => replica.end("SIGTERM")));

  const evidence: Evidence = {
    told: load.told,
    tables,
    givenUp: await readGivenUp(stack.owners.notification),
    log: await readServiceLog(logFile),
    injected,
    poison: messages.poison,
    runs: replicas.flatMap(({ runs }) => runs),
  };
  const invariants = check(evidence);
  const report = reportOf(
    { seed, minutes, evidence, sentAgain: messages.sentAgain, healing },
    invariants,
  );
  await keep("report.json", JSON.stringify(report, null, 2));
  await keep("report.txt", `${textOfInvariants(invariants)}\n\n${textOfFigures(report.figures)}`);
  if (report.figures.violations > 0 || !report.healed) {
    await keep("told.json", JSON.stringify(load.told, null, 1));
    await keep("tables.json", JSON.stringify(tables, null, 1));
    await keep("runs.json", JSON.stringify(evidence.runs, null, 1));
    const timelines = await timelinesOf(invariants, evidence, stack.owners);
    await keep("violations.txt", timelines);
    say(`\n${timelines}\n\nThe plan:\n${plan.map(textOf).join("\n")}`);
  }
  return report;
}

function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((over) => {
    const timer = setTimeout(over, ms);
    stop.addEventListener("abort", () => (clearTimeout(timer), over()), { once: true });
  });
}
