import type { AccountEventFields } from "@kenri/proto/account/decode.ts";
import type { Session } from "./session.ts";

// What this replica knows of accounts and of sessions that ended. Each of it replaces what is older,
// in whatever order it arrives: a status and roles have a version, an epoch only grows, and a session
// that ended stays ended.
//
// The status of a user is known once the account service has told it; events keep it up to date. An
// event alone does not tell it: a new stream gets the events of the old one again.

export interface AccountState {
  version: number;
  status: string;
  roles: string[];
  epoch: number;
}

interface KnownState extends AccountState {
  wasTold: boolean; // by the account service
}

export type Standing = "valid" | "ended" | "inactive" | "unknown";

// A user who was forgotten is asked for again.
const maxUsers = 200_000;
const pruneMs = 600_000;

export class KnownAccounts {
  #recent = new Map<string, KnownState>();
  #before = new Map<string, KnownState>();
  readonly #ended = new Map<string, number>(); // the time until which each matters, by session
  readonly #endedLastMs: number;
  #pruneAt = 0;
  #generation = 0;

  // An event does not say when its session would have expired, so it counts for as long as any may
  // last.
  constructor({ ttlMs }: { ttlMs: number }) {
    this.#endedLastMs = ttlMs;
  }

  get counts(): { users: number; endedSessions: number } {
    return {
      users: this.#recent.size + this.#before.size,
      endedSessions: this.#ended.size,
    };
  }

  // Another one each time the users are forgotten. An answer of an earlier one must not be learned.
  get generation(): number {
    return this.#generation;
  }

  stateOf(userId: string): KnownState | undefined {
    return this.#recent.get(userId) ?? this.#before.get(userId);
  }

  standing({ sessionId, issuerSession, userId, epoch }: Session): Standing {
    if (this.#ended.has(sessionId)) return "ended";
    if (issuerSession !== undefined && this.#ended.has(issuerSession)) return "ended";
    const state = this.stateOf(userId);
    if (state && epoch < state.epoch) return "ended";
    if (!state?.wasTold) return "unknown";
    if (state.status === "DELETED") return "ended";
    return state.status === "ACTIVE" ? "valid" : "inactive";
  }

  // Returns whether the event is new. An unknown user gets an entry as well, because an older answer
  // may be on its way.
  take(event: AccountEventFields): boolean {
    const { user_id, version, session_id } = event;
    if (session_id !== null) return this.end(session_id, Date.now() + this.#endedLastMs);
    const known = this.stateOf(user_id);
    const isNew = !known || version > known.version || event.session_epoch > known.epoch;
    this.#keep(user_id, {
      version,
      status: event.account_status,
      roles: event.roles,
      epoch: event.session_epoch,
      wasTold: false,
    });
    return isNew;
  }

  // What the account service has told.
  learn(userId: string, state: AccountState): void {
    this.#keep(userId, { ...state, wasTold: true });
  }

  #keep(userId: string, state: KnownState): void {
    const known = this.stateOf(userId);
    const newest = known && known.version > state.version ? known : state;
    const epoch = Math.max(known?.epoch ?? 0, state.epoch);
    const wasTold = state.wasTold || (known?.wasTold ?? false);
    this.#recent.set(userId, { ...newest, epoch, wasTold });
    if (this.#recent.size > maxUsers / 2) {
      this.#before = this.#recent;
      this.#recent = new Map();
    }
  }

  end(sessionId: string, untilMs: number): boolean {
    const isNew = !this.#ended.has(sessionId);
    this.#ended.set(sessionId, untilMs);
    if (Date.now() > this.#pruneAt) this.#prune();
    return isNew;
  }

  // Sessions of an earlier epoch have ended.
  endEarlier(userId: string, epoch: number): void {
    const nothing = { version: 0, status: "", roles: [] };
    this.#keep(userId, { ...nothing, epoch, wasTold: false });
  }

  // Events may have been missed, so each user is asked for again. Sessions that ended stay.
  forgetUsers(): void {
    this.#generation++;
    this.#recent = new Map();
    this.#before = new Map();
  }

  #prune(): void {
    const now = Date.now();
    for (const [sessionId, untilMs] of this.#ended) {
      if (untilMs <= now) this.#ended.delete(sessionId);
    }
    this.#pruneAt = now + pruneMs;
  }
}
