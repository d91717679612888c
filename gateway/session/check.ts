import type { ReadOnlyInbox } from "@kenri/shared/inbox/read_only_inbox.ts";
import { counter, countersBy } from "@kenri/shared/telemetry/metrics.ts";
import type { AccountClient } from "../account_client.ts";
import type { AccountState, KnownAccounts, Standing } from "./known_accounts.ts";
import type { Session } from "./session.ts";

// Whether something stands against a session: its user was suspended, or it has ended.
//
// What this replica knows is enough while it is current: it has read the stream of the account service
// a moment ago, and a watermark says that no event is missing there. Otherwise it asks the account
// service, and lets nobody in while that can't answer: an event may be missing that ended the session.

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
  "sessions checked, by how: by what is known, or by asking the account service",
  ["by"],
);
const checkedBy = countersBy(["known", "asked"] as const, (by) => checks.labels(by));

export type CheckSession = (session: Session) => Checked | Promise<Checked>;

export function sessionCheck(parts: SessionCheckParts): CheckSession {
  const { feed, known, stalenessMs } = parts;
  return (session) => {
    const standing = known.standing(session);
    // Whatever comes later, a session that ended does not begin again.
    if (standing === "ended") return { standing, state: undefined };
    const isCurrent = Math.max(feed.ageMs, feed.watermarkAgeMs) <= stalenessMs;
    if (standing !== "unknown" && isCurrent) {
      checkedBy.known.inc();
      return { standing, state: known.stateOf(session.userId) };
    }
    return ask(parts, session);
  };
}

async function ask(parts: SessionCheckParts, session: Session): Promise<Checked> {
  const { known, account } = parts;
  const { generation } = known;
  const state = await account.stateOf(session);
  checkedBy.asked.inc();
  // The answer may be older than the event for which the users were forgotten.
  if (known.generation !== generation) return await ask(parts, session);
  // A 404 may also come from a proxy on the way, so it is not remembered.
  if (!state) return { standing: "ended", state: undefined };
  if (state.ended) known.end(session.sessionId, session.expiresAtMs);
  known.learn(session.userId, state);
  const standing = known.standing(session);
  if (standing === "unknown") throw new Error("The state of a user is missing");
  return { standing, state: standing === "ended" ? undefined : known.stateOf(session.userId) };
}
