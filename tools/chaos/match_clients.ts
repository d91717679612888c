// Players: each joins, waits, cancels, repeats requests and leaves, again and again. Whatever goes wrong,
// they repeat a request until it is answered.
import { setTimeout as pause } from "node:timers/promises";
import type { HttpRequest } from "../load/http_request.ts";
import { RepeatingClient } from "../load/repeating_client.ts";
import { plantedKey } from "../planted.ts";
import { Random } from "./random.ts";

/** `again` repeats a join, `other` uses its key with other attributes. */
export type MatchCallKind = "join" | "again" | "other" | "look" | "cancel";

/** One request about a ticket, from its first attempt to its answer. */
export interface MatchCall {
  kind: MatchCallKind;
  userId: string;
  mode: string;
  key: string; // of the join
  ticketId: string; // what it is about; empty for a join
  /** In milliseconds since 1970. */
  sentAt: number;
  answeredAt: number;
  attempts: number;
  answer: { status: number; body: string } | undefined;
}

export interface MatchLoad {
  calls: MatchCall[];
  /** Asks for nothing new, and resolves when all is answered. */
  finish(): Promise<void>;
  /** Gives up what is still unanswered. */
  abandon(): void;
}

export const playerUser = "player-";
const players = 8;
const ticketsOfUser = 4;
const pauseMs = 500;
/** Shorter than an attempt may take. */
const wait = "2s";
const attemptTimeoutMs = 4_000;
const modes = ["casual", "rank"] as const;

export function startMatchLoad({ urls, seed }: { urls: string[]; seed: number }): MatchLoad {
  const calls: MatchCall[] = [];
  const stopping = new AbortController();
  const abandoned = new AbortController();
  const client = new RepeatingClient(urls, {
    ...{ attemptTimeoutMs, pauseMs: 200 },
    abandoned: abandoned.signal,
  });
  const random = new Random(seed + 1);
  const running = Array.from({ length: players }, async (_, number) => {
    const own = new Random(random.int(0, 2 ** 32));
    await pause(own.next() * pauseMs);
    for (let user = 1; !stopping.signal.aborted; user++) {
      const player = new Player(`${playerUser}${number}-${user}`, { client, calls, random: own });
      await player.run(stopping.signal);
    }
  });
  return {
    calls,
    finish: async () => {
      stopping.abort();
      await Promise.all(running);
    },
    abandon: () => abandoned.abort(),
  };
}

interface PlayerParts {
  client: RepeatingClient;
  calls: MatchCall[];
  random: Random;
}

interface Ticket {
  mode: string;
  key: string;
  id: string;
}

/** One user, who has a few tickets one after the other. */
class Player {
  readonly #userId: string;
  readonly #parts: PlayerParts;

  constructor(userId: string, parts: PlayerParts) {
    this.#userId = userId;
    this.#parts = parts;
  }

  async run(stop: AbortSignal): Promise<void> {
    for (let i = 0; i < ticketsOfUser && !stop.aborted; i++) {
      const hasEnded = await this.#haveTicket();
      if (!hasEnded) return; // a second ticket would be refused
      await pause(pauseMs * (0.5 + this.#parts.random.next()), undefined, { signal: stop })
        .catch(() => {});
    }
  }

  /** Returns whether the user knows that it has ended. */
  async #haveTicket(): Promise<boolean> {
    const { random } = this.#parts;
    const [mode, key] = [random.pick(modes), `${plantedKey}-${crypto.randomUUID()}`];
    const join = (kind: MatchCallKind) => this.#ask(kind, { mode, key, id: "" });
    const [first] = await Promise.all(
      random.next() < 0.15 ? [join("join"), join("again")] : [join("join")],
    );
    const id = idIn(first);
    if (id === undefined) return false;
    const ticket = { mode, key, id };
    const chance = random.next();
    if (chance < 0.12) return false;
    if (chance < 0.24) await join("again");
    if (chance > 0.9) await join("other");
    if (chance > 0.3 && chance < 0.45) await this.#ask("cancel", ticket);
    while (true) {
      const status = statusIn(await this.#ask("look", ticket));
      if (status === undefined) return false;
      if (status !== "QUEUED") break;
    }
    if (random.next() < 0.2) await this.#ask(random.pick(["cancel", "look"] as const), ticket);
    return true;
  }

  async #ask(kind: MatchCallKind, { mode, key, id }: Ticket): Promise<MatchCall> {
    const { client, calls } = this.#parts;
    const call: MatchCall = {
      ...{ kind, userId: this.#userId, mode, key, ticketId: id, attempts: 0 },
      ...{ sentAt: Date.now(), answeredAt: 0, answer: undefined },
    };
    calls.push(call);
    const attempts = await client.ask(requestOf(call));
    const last = attempts.at(-1);
    call.attempts = attempts.length;
    if (last?.outcome === "answered") {
      call.answer = last.answer;
      call.answeredAt = last.answeredAt;
    }
    return call;
  }
}

function requestOf({ kind, userId, mode, key, ticketId }: MatchCall): HttpRequest {
  const headers = { "X-User-Id": userId };
  const path = `/v1/matchmaking/tickets/${ticketId}`;
  switch (kind) {
    case "look":
      return { path: `${path}?wait=${wait}`, init: { method: "GET", headers } };
    case "cancel":
      return { path, init: { method: "DELETE", headers } };
    default: {
      const attributes = kind === "other" ? { region: "other" } : {};
      return {
        path: `/v1/matchmaking/queues/${mode}/tickets`,
        init: {
          method: "POST",
          headers: { ...headers, "Content-Type": "application/json" },
          body: JSON.stringify({ party_size: 1, attributes, idempotency_key: key }),
        },
      };
    }
  }
}

/** What a call says about a ticket; undefined if it was refused, or not answered. */
export interface Said {
  ticket_id: string;
  status: string;
  matched?: { match_id: string; peer_user_ids: string[] } | null;
}

export function saidBy({ answer }: MatchCall): Said | undefined {
  return answer?.status === 200 ? JSON.parse(answer.body) : undefined;
}

const idIn = (call: MatchCall) => saidBy(call)?.ticket_id;
const statusIn = (call: MatchCall) => saidBy(call)?.status;
