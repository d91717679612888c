import type { ReadOnlyInbox } from "@kenri/shared/inbox/read_only_inbox.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { counter, countersBy } from "@kenri/shared/telemetry/metrics.ts";
import type { AccountClient } from "../account_client.ts";
import type { AccountState, KnownAccounts, Standing } from "./known_accounts.ts";
import type { Session } from "./session.ts";

// Whether something stands against a session: its user was suspended, or it has ended.
//
// What this replica knows is enough while it is current: it has read the stream of the account service
// a moment ago, and a watermark says that no event is missing there. Otherwise it asks the account
// service. If that can't be reached while the stream itself is current, what is known is enough as
// well, because without that service nobody can suspend a user either.

export type Feed = Pick<ReadOnlyInbox<unknown>, "ageMs" | "watermarkAgeMs">;

export interface SessionCheckParts {
  feed: Feed;
  known: KnownAccounts;
  account: Pick<AccountClient, "stateOf">;
  stalenessMs: number;
}

export interface Checked {
  standing: Exclude<Standing, "unknown">;
  state: AccountState | undefined; // undefined if the session has ended
}

const checks = counter(
  "gateway_session_checks_total",
  "sessions checked, by how: by what is known, by asking the account service, or by what is known because it is down",
  ["by"],
);
const checkedBy = countersBy(["known", "asked", "known_alone"] as const, (by) => checks.labels(by));

export type CheckSession = (session: Session) => Checked | Promise<Checked>;

export function sessionCheck(parts: SessionCheckParts): CheckSession {
  const { feed, known, stalenessMs } = parts;
  return (session) => {
    const standing = known.standing(session);
    const isCurrent = feed.ageMs <= stalenessMs;
    // Whatever comes later, a session that ended does not begin again.
    if (standing === "ended") return { standing, state: undefined };
    if (standing !== "unknown" && isCurrent && feed.watermarkAgeMs <= stalenessMs) {
      checkedBy.known.inc();
      return { standing, state: known.stateOf(session.userId) };
    }
    return ask(parts, session, isCurrent);
  };
}

async function ask(
  { known, account }: SessionCheckParts,
  session: Session,
  isCurrent: boolean,
): Promise<Checked> {
  try {
    const state = await account.stateOf(session);
    checkedBy.asked.inc();
    // A 404 may also come from a proxy on the way, so it is not remembered.
    if (!state) return { standing: "ended", state: undefined };
    if (state.ended) known.end(session.sessionId, session.expiresAtMs);
    known.learn(session.userId, state);
  } catch (error) {
    if (!isCurrent || !(error instanceof ApiError) || error.status < 500) throw error;
    if (!known.stateOf(session.userId)) throw error;
    checkedBy.known_alone.inc();
  }
  const standing = known.standing(session);
  if (standing === "unknown") throw new Error("The state of a user is missing");
  return { standing, state: standing === "ended" ? undefined : known.stateOf(session.userId) };
}
