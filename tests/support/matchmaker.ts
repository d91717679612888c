// In place of the matchmaking service, and of the inbox in which its events arrive: what
// docs/accounts.md says of tickets, on a real HTTP server, with its state in memory.
import type { Behaviour } from "../../tools/receiver/receiver.ts";
import { type Received, type Receiver, startReceiver } from "./receiver.ts";
import { json } from "./behind.ts";

type Status = "QUEUED" | "MATCHED" | "CANCELLED" | "EXPIRED" | "INVALID";

interface Ticket {
  ticket_id: string;
  user_id: string;
  mode: string;
  key: string;
  attributes: string;
  status: Status;
  expires_at: string;
  matched:
    | { match_id: string; peer_user_ids: string[]; session: object; matched_at: string }
    | null;
}

interface State {
  tickets: Ticket[];
  notifications: { user_id: string; notification_id: string }[]; // the newest first
  changed: PromiseWithResolvers<void>; // replaced at each change
  isDown: boolean;
  losesAnswers: boolean;
}

export interface Matchmaker extends AsyncDisposable {
  url: string;
  receiver: Receiver;
  tickets: Ticket[];
  /** Ends the waiting tickets of a user. */
  end(userId: string, status: "EXPIRED" | "INVALID"): void;
  /** From now on it answers as if its Redis was down, or no more. */
  setDown(isDown: boolean): void;
  /** From now on it does what it is asked to, and closes the connection without an answer. */
  setLosing(losesAnswers: boolean): void;
}

export async function startMatchmaker(): Promise<Matchmaker> {
  const receiver = await startReceiver();
  const changed = Promise.withResolvers<void>();
  const [tickets, notifications] = [[], []];
  const state: State = { tickets, notifications, changed, isDown: false, losesAnswers: false };
  receiver.behave(async (request) => {
    const answer = await answerTo(state, request);
    return state.losesAnswers ? "close" : answer;
  });
  return {
    url: receiver.url,
    receiver,
    tickets,
    end: (userId, status) => {
      for (const ticket of state.tickets) {
        if (ticket.user_id === userId && ticket.status === "QUEUED") settle(state, ticket, status);
      }
    },
    setDown: (isDown) => void (state.isDown = isDown),
    setLosing: (losesAnswers) => void (state.losesAnswers = losesAnswers),
    [Symbol.asyncDispose]: async () => {
      state.isDown = true;
      announce(state);
      await receiver[Symbol.asyncDispose]();
    },
  };
}

function answerTo(state: State, request: Received): Behaviour | Promise<Behaviour> {
  const userId = request.headers.get("X-User-Id") ?? "";
  const [path = "", query] = request.path.split("?");
  const [, , kind, what, id = ""] = path.split("/").map(decodeURIComponent);
  if (kind === "users") return json(inboxOf(state, userId));
  if (state.isDown) return down;
  if (what === "queues") return join(state, userId, id, request.body);
  const ticket = state.tickets.find(({ ticket_id }) => ticket_id === id);
  if (!ticket) return refused(404, "TICKET_NOT_FOUND", "ticket not found");
  if (ticket.user_id !== userId) return refused(403, "TICKET_FORBIDDEN", "not your ticket");
  if (request.method === "GET") {
    return look(state, ticket, parseInt(new URLSearchParams(query).get("wait") ?? "0"));
  }
  if (ticket.status === "QUEUED") settle(state, ticket, "CANCELLED");
  return shown(ticket);
}

const down: Behaviour = {
  ...json({ code: "MATCHMAKING_UNAVAILABLE", message: "Redis is down, try again" }, 503) as object,
  headers: { "Content-Type": "application/json", "Retry-After": "1" },
};

function join(state: State, user_id: string, written: string, body: string): Behaviour {
  const mode = written.toLowerCase();
  const { party_size, attributes: given, idempotency_key: key } = JSON.parse(body);
  if (!["casual", "rank"].includes(mode)) {
    return refused(400, "BAD_REQUEST", `unsupported mode: ${written}`);
  }
  if (party_size !== 1) return refused(400, "BAD_REQUEST", "party_size must be 1");
  if (!key) return refused(400, "BAD_REQUEST", "idempotency_key is required");
  const attributes = JSON.stringify(given ?? {});
  const own = state.tickets.filter((one) => one.user_id === user_id && one.mode === mode);
  const known = own.find((ticket) => ticket.key === key);
  if (known && known.attributes !== attributes) {
    return json({ code: "IDEMPOTENCY_KEY_CONFLICT", message: "other attributes" }, 409);
  }
  if (known) return shown(known);
  if (own.some(({ status }) => status === "QUEUED")) {
    return refused(409, "ALREADY_QUEUED", "the user has a waiting ticket in this mode");
  }
  const expires_at = new Date(Date.now() + 60_000).toISOString();
  const ticket_id = `${mode}-${crypto.randomUUID()}`;
  const ticket: Ticket = {
    ...{ ticket_id, user_id, mode, key, attributes, status: "QUEUED", expires_at, matched: null },
  };
  state.tickets.push(ticket);
  pair(state, ticket);
  return shown(ticket);
}

function pair(state: State, ticket: Ticket): void {
  const { mode, user_id } = ticket;
  const other = state.tickets.find((one) =>
    one.mode === mode && one.status === "QUEUED" && one.user_id !== user_id
  );
  if (!other) return;
  const matched_at = new Date().toISOString();
  const match = { match_id: crypto.randomUUID(), session: {}, matched_at };
  ticket.matched = { ...match, peer_user_ids: [other.user_id] };
  other.matched = { ...match, peer_user_ids: [user_id] };
  for (const one of [ticket, other]) settle(state, one, "MATCHED");
}

const typeOf: Partial<Record<Status, string>> = { MATCHED: "MatchFound", EXPIRED: "TicketExpired" };

function settle(state: State, ticket: Ticket, status: Status): void {
  ticket.status = status;
  const { user_id, mode } = ticket;
  const type = typeOf[status];
  if (type) {
    const created_at = new Date().toISOString();
    const notification = { type, status: "SENT", created_at, payload: { mode } };
    state.notifications.unshift({ user_id, notification_id: crypto.randomUUID(), ...notification });
  }
  announce(state);
}

function announce(state: State): void {
  state.changed.resolve();
  state.changed = Promise.withResolvers();
}

async function look(state: State, ticket: Ticket, seconds: number): Promise<Behaviour> {
  const late = Promise.withResolvers<void>();
  let isLate = seconds === 0;
  const timer = setTimeout(() => {
    isLate = true;
    late.resolve();
  }, seconds * 1_000);
  while (ticket.status === "QUEUED" && !state.isDown && !isLate) {
    await Promise.race([state.changed.promise, late.promise]);
  }
  clearTimeout(timer);
  return state.isDown ? down : shown(ticket);
}

function inboxOf({ notifications }: State, userId: string): object {
  return { user_id: userId, notifications: notifications.filter((one) => one.user_id === userId) };
}

const refused = (status: number, code: string, message: string) =>
  json({ code: `MATCHMAKING_${code}`, message }, status);

const shown = ({ ticket_id, status, expires_at, matched }: Ticket) =>
  json({ ticket_id, status, expires_at, matched });
