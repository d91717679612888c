// Clients of the account service and of the gateways. Each has one user after the other, who logs in,
// changes the profile, is suspended and resumed, gets roles, and whose sessions end; all the time it
// looks at both gateways whether the user's sessions are let in.
import { setTimeout as pause } from "node:timers/promises";
import type { HttpRequest } from "../load/http_request.ts";
import { attempt, RepeatingClient } from "../load/repeating_client.ts";
import { Random } from "./random.ts";
import {
  beginSession,
  boundMs,
  type SessionLook,
  sessionMs,
  type UserSession,
  Watch,
} from "./session_watch.ts";

const kinds = ["profile", "suspend", "resume", "roles", "end", "end all"] as const;
/** A logout goes through a gateway, once. */
export type AccountChangeKind = "login" | "logout" | typeof kinds[number];

/** One request to change an account, from its first attempt to its answer. */
export interface AccountChange {
  kind: AccountChangeKind;
  traceId: string; // of all its attempts; a gateway does not pass it on
  subject: string; // the identity
  userId: string; // empty for a login
  sessionId: string; // empty unless one session ends
  /** In milliseconds since 1970, as those of a look. */
  sentAt: number;
  answeredAt: number;
  attempts: number;
  answer: { status: number; body: string } | undefined;
}

export interface AccountEvidence {
  changes: AccountChange[];
  sessions: UserSession[];
  looks: SessionLook[];
}

export interface AccountLoad extends AccountEvidence {
  /** Asks for nothing new, and resolves when all is answered. */
  finish(): Promise<void>;
  /** Gives up what is still unanswered. */
  abandon(): void;
}

interface AccountLoadOptions {
  accounts: string[]; // each leads to a replica of the account service
  gateways: string[]; // likewise
  seed: number;
}

const clients = 4;
const stepsOfUser = 6;
const stepMs = 700;
/** An ended session is looked at for longer than the bound within which it must have ended everywhere. */
const lingerMs = 10_000;
const attemptTimeoutMs = 3_000;

const provider = "https://issuer.example";

export function startAccountLoad({ accounts, gateways, seed }: AccountLoadOptions): AccountLoad {
  const stopping = new AbortController();
  const abandoned = new AbortController();
  const client = new RepeatingClient(accounts, {
    ...{ attemptTimeoutMs, pauseMs: 200 },
    abandoned: abandoned.signal,
  });
  const found: AccountEvidence = { changes: [], sessions: [], looks: [] };
  const random = new Random(seed);
  const running = Array.from({ length: clients }, async (_, number) => {
    const own = new Random(random.int(0, 2 ** 32));
    await pause(own.next() * stepMs);
    for (let user = 1; !stopping.signal.aborted; user++) {
      const life = new Life(`user-${number}-${user}`, { client, gateways, found, random: own });
      await life.run(stopping.signal);
    }
  });
  return {
    ...found,
    finish: async () => {
      stopping.abort();
      await Promise.all(running);
    },
    abandon: () => abandoned.abort(),
  };
}

interface LifeParts {
  client: RepeatingClient;
  gateways: string[];
  found: AccountEvidence;
  random: Random;
}

/** One user, from the first login on. */
class Life {
  readonly #subject: string;
  readonly #parts: LifeParts;
  #userId = "";
  #epoch = 0;
  #isSuspended = false;
  #resumedAt = 0;
  #isSupport = false;
  #steps = 0;
  #current: Watch | undefined;

  constructor(subject: string, parts: LifeParts) {
    this.#subject = subject;
    this.#parts = parts;
  }

  async run(stop: AbortSignal): Promise<void> {
    const login = () => this.#ask("login", loginOf(this.#subject));
    const [first] = await Promise.all([login(), login()]); // from two devices
    if (first.answer?.status !== 200) return;
    const { user_id, session_epoch } = JSON.parse(first.answer.body);
    this.#userId = user_id;
    this.#epoch = session_epoch;
    await this.#begin(stop);
    while (!stop.aborted && this.#steps++ < stepsOfUser) {
      if (this.#parts.random.next() < 0.1 && await this.#logOut(stop)) continue;
      await pause(stepMs * (0.5 + this.#parts.random.next()), undefined, { signal: stop })
        .catch(() => {});
      if (stop.aborted || !await this.#step(stop)) break;
    }
    this.#current?.endsIn(lingerMs);
  }

  /** Returns whether nothing of the step can still have an effect later. */
  async #step(stop: AbortSignal): Promise<boolean> {
    const kind = this.#isSuspended
      ? this.#parts.random.pick(["resume", "end", "profile"] as const)
      : this.#parts.random.pick(["suspend", "profile", "roles", "end", "end all"] as const);
    const old = this.#current;
    const sessionId = kind === "end" ? old?.session.sessionId ?? "" : "";
    const change = await this.#ask(kind, this.#requestOf(kind, sessionId), sessionId);
    const isDone = change.answer !== undefined && change.answer.status < 300;
    if (kind === "suspend") this.#isSuspended = true;
    if (kind === "resume") {
      this.#isSuspended = false;
      this.#resumedAt = Date.now();
    }
    if (kind === "end" || kind === "end all") {
      old?.endsIn(lingerMs);
      if (kind === "end all") this.#epoch++;
      // An attempt without an answer may arrive later, and end sessions that began after it.
      if (isDone && change.attempts === 1) await this.#begin(stop);
    }
    return isDone && change.attempts === 1;
  }

  /** Returns whether it was tried. A user who was resumed a moment ago may still be refused. */
  async #logOut(stop: AbortSignal): Promise<boolean> {
    const watch = this.#current;
    if (!watch || this.#isSuspended || Date.now() - this.#resumedAt < boundMs) return false;
    const { sessionId } = watch.session;
    const url = this.#parts.random.pick(this.#parts.gateways);
    const change = this.#noted("logout", sessionId);
    const one = await attempt(url, watch.logout(), attemptTimeoutMs);
    change.attempts = 1;
    if (one.outcome === "answered") {
      change.answer = one.answer;
      change.answeredAt = one.answeredAt;
    }
    watch.endsIn(lingerMs);
    await this.#begin(stop);
    return true;
  }

  #requestOf(kind: typeof kinds[number], sessionId: string): HttpRequest {
    const user = `/v1/users/${this.#userId}`;
    switch (kind) {
      case "profile":
        return json("PATCH", user, { display_name: `${this.#subject} ${this.#steps}` });
      case "suspend":
      case "resume":
        return json("POST", `${user}:${kind}`, { reason: "chaos" });
      case "roles":
        this.#isSupport = !this.#isSupport;
        return json("PUT", `${user}/roles`, {
          roles: this.#isSupport ? ["USER", "SUPPORT"] : ["USER"],
        });
      case "end":
        return json("POST", `/v1/sessions/${sessionId}:end`, {
          user_id: this.#userId,
          expires_at: new Date(Date.now() + sessionMs).toISOString(),
        });
      case "end all":
        return { path: `${user}/sessions:end`, init: { method: "POST", headers: {} } };
    }
  }

  async #ask(
    kind: AccountChangeKind,
    { path, init }: HttpRequest,
    sessionId = "",
  ): Promise<AccountChange> {
    const { client } = this.#parts;
    const change = this.#noted(kind, sessionId);
    const headers = { ...init?.headers, "X-Trace-Id": change.traceId };
    const attempts = await client.ask({ path, init: { method: "GET", ...init, headers } });
    const last = attempts.at(-1);
    change.attempts = attempts.length;
    if (last?.outcome === "answered") {
      change.answer = last.answer;
      change.answeredAt = last.answeredAt;
    }
    return change;
  }

  #noted(kind: AccountChangeKind, sessionId: string): AccountChange {
    const change: AccountChange = {
      ...{ kind, traceId: crypto.randomUUID(), subject: this.#subject, userId: this.#userId },
      ...{ sessionId, sentAt: Date.now(), answeredAt: 0, attempts: 0, answer: undefined },
    };
    this.#parts.found.changes.push(change);
    return change;
  }

  async #begin(stop: AbortSignal): Promise<void> {
    const { found, gateways } = this.#parts;
    const { session, cookie } = await beginSession(this.#userId, this.#epoch);
    found.sessions.push(session);
    this.#current = new Watch(session, cookie);
    gateways.forEach((url, i) =>
      void this.#current?.look(`gateway-${i + 1}`, url, found.looks, stop)
    );
  }
}

const loginOf = (subject: string) => json("POST", "/v1/identities:resolve", { provider, subject });

function json(method: string, path: string, body: unknown): HttpRequest {
  return {
    path,
    init: { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) },
  };
}
