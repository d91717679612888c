// deno task demo: simulates a small shop that uses the running services. It prints each request and
// each notification, and compares the two at the end. The exit code is 1 if they don't match.
import { printable, printableLines } from "../../shared/process/printable.ts";
import { kenriClient } from "../../client/client.ts";
import { openAccounts } from "./accounts.ts";
import { findings, type Made, table, wrongBalances } from "./balance.ts";
import { type Arrival, Inboxes } from "./inboxes.ts";
import { type Options, readOptions, usage } from "./options.ts";
import { playGames } from "./players.ts";
import { Points, sum } from "./points.ts";
import { endStatus, paint, say, sayTimed, showStatus } from "./screen.ts";
import { type Kind, people, type Step, Story } from "./story.ts";
import { type Answer, problemWith, send } from "./till.ts";
import { missingWebhooks, receiveWebhooks } from "./webhooks.ts";

let nameOf = (user: string) => user;

const lookEveryMs = 250;
// Long enough for retries of a delivery, and for an outage in between.
const arriveWithinMs = 30_000;

// Returns a sentence for each problem.
async function run(options: Options): Promise<string[]> {
  const run = Date.now().toString(36).slice(-5);
  const names = people.map((name) => `${name}-${run}`);
  const accounts = await openAccounts(options, names);
  nameOf = accounts.nameOf;
  const story = new Story(run, names.map((name) => accounts.ids.get(name) ?? name));
  const inboxes = new Inboxes(options.notification, options.headers, story.users);
  await checkServices(options, inboxes);
  const webhooks = await receiveWebhooks(options.notification, options.headers);
  if (typeof webhooks === "string") say(paint("grey", `No webhooks: ${webhooks}`));
  await using _receiving = typeof webhooks === "string" ? undefined : webhooks;
  const [watched = ""] = names;
  if (accounts.ids.has(watched)) {
    say(`Watch what one of them gets: log in as "${watched}" at ${options.gateway}\n`);
  }
  const playing = playGames(options, run);
  const points = new Points(kenriClient(options.entitlement, { headers: options.headers }));
  const counts = new Map<Kind, number>();
  const problems: string[] = [];
  const made = (): Made[] => [...story.changes, ...points.given];
  const status = () =>
    showStatus(
      `${sum([...counts.values()])} of ${options.steps} requests · ${made().length} changes · ` +
        `${inboxes.arrivals.size} arrived`,
    );

  const done = new AbortController();
  const watching = watch(inboxes, done.signal, status);
  for await (const step of paced(story, options)) {
    const answers = await Promise.all(
      Array.from(
        { length: step.kind === "double tap" ? 2 : 1 },
        () => send(options.entitlement, options.headers, step),
      ),
    );
    const problem = problemWith(step, answers);
    if (problem) problems.push(problem);
    counts.set(step.kind, (counts.get(step.kind) ?? 0) + 1);
    sayTimed(stepLine(step, answers, problem));
    if (answers[0]?.status === 200 && step.kind !== "repeat") {
      const line = await points.follow(step);
      if (line) sayTimed(pointsLine(step, line));
    }
    status();
  }
  await allArrived(made(), inboxes);
  const games = await playing;
  done.abort();
  await watching;
  await inboxes.look(); // duplicates have arrived by now
  endStatus();
  const arrivals = [...inboxes.arrivals.values()];
  const balances = await Promise.all(story.users.map(async (user) => ({
    user,
    expected: points.expectedOf(user),
    found: await points.balanceOf(user),
  })));
  problems.push(...findings(made(), arrivals), ...wrongBalances(balances));
  if (typeof webhooks !== "string") {
    problems.push(...await missingWebhooks(webhooks, arrivals), ...webhooks.problems);
  }
  const received = typeof webhooks === "string" ? undefined : webhooks.verified;
  say(printableLines(table(counts, made(), arrivals, balances, received)));
  if (typeof games === "string") say(paint("grey", `No games: ${games}\n`));
  else {
    say(printableLines(`${games.summary}\n`));
    problems.push(...games.problems);
  }
  return problems;
}

async function checkServices({ entitlement, notification }: Options, inboxes: Inboxes) {
  for (const url of [entitlement, notification]) {
    const response = await fetch(`${url}/livez`, { redirect: "error" }).catch(() => undefined);
    await response?.body?.cancel();
    if (response?.ok) continue;
    throw new Error(`No service answers at ${url}: start \`deno task dev\` in another terminal`);
  }
  await inboxes.look().catch((error: Error) => {
    throw new Error(
      `${error.message}\nThe demo needs NOTIFICATION_DEBUG_ENABLED=true, and KENRI_TOKEN if the ` +
        "services require a credential",
    );
  });
}

// Yields the steps at an even pace, and catches up after a slow answer.
async function* paced(story: Story, { steps, perSecond }: Options): AsyncGenerator<Step> {
  const startedAt = performance.now();
  for (let count = 0; count < steps; count++) {
    const waitMs = startedAt + count * 1_000 / perSecond - performance.now();
    if (waitMs > 0) await pause(waitMs);
    yield story.next();
  }
}

async function watch(inboxes: Inboxes, until: AbortSignal, status: () => void): Promise<void> {
  while (!until.aborted) {
    // If the service is unavailable for a moment, the next look finds what this one missed.
    for (const arrival of await inboxes.look().catch(() => [])) sayTimed(arrivalLine(arrival));
    status();
    await pause(lookEveryMs);
  }
}

async function allArrived(made: Made[], inboxes: Inboxes): Promise<void> {
  const deadline = performance.now() + arriveWithinMs;
  while (inboxes.arrivals.size < made.length && performance.now() < deadline) {
    await pause(lookEveryMs);
  }
  await pause(2 * lookEveryMs);
}

function stepLine({ kind, action, fields }: Step, answers: Answer[], problem?: string): string {
  const [first] = answers;
  const { status, version, code } = JSON.parse(first?.text ?? "{}");
  const said = first?.status === 200
    ? paint("green", `200 ${status.padEnd(7)} version ${version}`)
    : paint("yellow", `${first?.status}`);
  const notes: Record<Kind, string> = {
    "change": "",
    "double tap": "sent twice at once, changed once",
    "repeat": "repeated, same answer",
    "refusal": `${code}: already in that state`,
    "key of another": `${code}: the key belongs to another request`,
  };
  const verb = action === "grants" ? "grant " : "revoke";
  const what = columns(fields.user_id, fields.stock_keeping_unit);
  const note = problem ? paint("red", problem) : paint("grey", notes[kind]);
  return `${paint("cyan", verb)} → ${what} ${said} ${note}`.trimEnd();
}

function pointsLine({ fields }: Step, line: string): string {
  return `${paint("cyan", "points")} → ${
    columns(fields.user_id, fields.stock_keeping_unit)
  } ${line}`;
}

function arrivalLine(arrival: Arrival): string {
  const { user, status, tookMs } = arrival;
  const isPoints = "amount" in arrival;
  const what = isPoints ? "points" : arrival.item;
  const [name, value] = isPoints
    ? [`+${arrival.amount}`, `balance ${arrival.balance}`]
    : [arrival.type, arrival.version];
  const end = status === "SENT"
    ? paint(isPoints ? "green" : "grey", `${name} ${value} after ${tookMs} ms`)
    : paint("red", `${name} ${value} FAILED`);
  return `${paint("magenta", " inbox")} ← ${printable(columns(user, what))} ${end}`;
}

function columns(user: string, what: string): string {
  return `${nameOf(user).padEnd(11)} ${what.padEnd(15)}`;
}

function pause(ms: number): Promise<void> {
  return new Promise((over) => setTimeout(over, ms));
}

if (Deno.args.includes("--help")) {
  console.log(usage);
  Deno.exit(0);
}
try {
  const options = readOptions();
  const problems = await run(options);
  for (const problem of problems) say(paint("red", problem));
  if (problems.length === 0) {
    say(paint("green", "Every change arrived exactly once."));
  }
  Deno.exit(problems.length === 0 ? 0 : 1);
} catch (error) {
  endStatus();
  console.error(printableLines(error instanceof Error ? error.message : String(error)));
  Deno.exit(1);
}
