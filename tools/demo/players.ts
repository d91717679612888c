// Players who come and go while the shop is open: most find somebody to play with, one gives up, and one
// stays alone until the time to wait is over. What they were told must be in their inboxes.
import { inboxOf } from "./inboxes.ts";
import { paint, sayTimed } from "./screen.ts";

interface Where {
  matchmaking: string;
  notification: string;
  headers: Record<string, string>;
}

/** In the order in which they come. */
const players = [
  { name: "ivo", mode: "casual", givesUp: false },
  { name: "jun", mode: "rank", givesUp: true },
  { name: "kai", mode: "casual", givesUp: false },
  { name: "lou", mode: "casual", givesUp: false },
  { name: "max", mode: "rank", givesUp: false }, // nobody else comes there
  { name: "noa", mode: "casual", givesUp: false },
];
const comeEveryMs = 700;
const giveUpAfterMs = 1_000;
const tellWithinMs = 10_000;

interface Ticket {
  ticket_id: string;
  status: string;
  expires_at: string;
  matched: { match_id: string; peer_user_ids: string[] } | null;
}

interface Played {
  user: string;
  ticket: Ticket;
}

export interface Games {
  summary: string; // a line
  problems: string[];
}

/** Or why nobody plays here. */
export async function playGames(where: Where, run: string): Promise<Games | string> {
  const first = await fetch(`${where.matchmaking}/livez`, { redirect: "error" })
    .catch(() => undefined);
  await first?.body?.cancel();
  if (!first?.ok) return `No matchmaking answers at ${where.matchmaking}`;
  try {
    const played = await Promise.all(
      players.map(async ({ name, mode, givesUp }, at) => {
        await pause(at * comeEveryMs);
        const user = `${name}-${run}`;
        return { user, ticket: await play(where, user, mode, givesUp) };
      }),
    );
    return { summary: summaryOf(played), problems: await untold(where, played) };
  } catch (error) {
    return `Matchmaking does not play along: ${(error as Error).message}`;
  }
}

async function play(where: Where, user: string, mode: string, givesUp: boolean): Promise<Ticket> {
  const body = { party_size: 1, attributes: {}, idempotency_key: user };
  let ticket = await ask(where, user, `queues/${mode}/tickets`, "POST", JSON.stringify(body));
  line(user, `waits in ${mode}`, "grey");
  const path = `tickets/${ticket.ticket_id}`;
  if (givesUp) {
    await pause(giveUpAfterMs);
    ticket = await ask(where, user, path, "DELETE");
  }
  const until = performance.now() + 120_000; // longer than any sensible time to wait
  while (ticket.status === "QUEUED" && performance.now() < until) {
    ticket = await ask(where, user, `${path}?wait=10s`, "GET");
  }
  line(user, ...wordsFor(ticket));
  return ticket;
}

function wordsFor({ status, matched }: Ticket): [string, "green" | "yellow"] {
  switch (status) {
    case "MATCHED":
      return [`plays with ${matched?.peer_user_ids.join(", ")}`, "green"];
    case "CANCELLED":
      return ["gave up", "yellow"];
    case "EXPIRED":
      return ["found nobody in time", "yellow"];
    default:
      return [`has a ticket that is ${status}`, "yellow"];
  }
}

function line(user: string, words: string, color: "grey" | "green" | "yellow"): void {
  sayTimed(`${paint("cyan", "player")} → ${paint(color, `${user.padEnd(11)} ${words}`)}`);
}

async function ask(
  { matchmaking, headers }: Where,
  user: string,
  path: string,
  method: string,
  body?: string,
): Promise<Ticket> {
  const answer = await fetch(`${matchmaking}/v1/matchmaking/${path}`, {
    method,
    headers: {
      ...headers,
      "X-User-Id": user,
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
    },
    signal: AbortSignal.timeout(30_000),
    redirect: "error", // the credential is for nobody else
    ...(body === undefined ? {} : { body }),
  });
  const json = await answer.json();
  if (!answer.ok) throw new Error(`${answer.status} ${json.code}: ${json.message}`);
  return json;
}

function summaryOf(played: Played[]): string {
  const of = (status: string) => played.filter(({ ticket }) => ticket.status === status).length;
  return `  players: ${of("MATCHED")} found somebody, ${of("CANCELLED")} gave up, ` +
    `${of("EXPIRED")} stayed alone`;
}

const typeOfEnd = new Map([["MATCHED", "MatchFound"], ["EXPIRED", "TicketExpired"]]);

// One sentence for each player who was told nothing, or twice. Where notification does not read the
// events of matchmaking, nobody is told anything, and that is no problem.
async function untold({ notification, headers }: Where, played: Played[]): Promise<string[]> {
  const wanted = played.filter(({ ticket }) => typeOfEnd.has(ticket.status));
  const find = () =>
    Promise.all(wanted.map(async ({ user, ticket }) => {
      const inbox = await inboxOf(notification, headers, user);
      const told = inbox.filter(({ type }) => type === typeOfEnd.get(ticket.status)).length;
      return { user, status: ticket.status, told };
    }));
  const deadline = performance.now() + tellWithinMs;
  let found = await find();
  while (found.some(({ told }) => told === 0) && performance.now() < deadline) {
    await pause(250);
    found = await find();
  }
  if (found.every(({ told }) => told === 0)) {
    sayTimed(paint("grey", "The players got no notification: notification.matchmaking.enabled"));
    return [];
  }
  return found.filter(({ told }) => told !== 1)
    .map(({ user, status, told }) =>
      `${user} is ${status} and was told so ${told} times, not once`
    );
}

function pause(ms: number): Promise<void> {
  return new Promise((over) => setTimeout(over, ms));
}
