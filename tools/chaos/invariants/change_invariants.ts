// The tables of the entitlement service must contain what was answered, and nothing else.
import type { Answered } from "./invariants.ts";
import { changeOf, type IndexedTables, type Invariant, invariant, lineOf } from "./invariant.ts";

export function changesAreRecorded(
  { eventsOf, auditOf, auditOfKey }: IndexedTables,
  answered: Answered[],
): Invariant {
  return invariant(
    "1. An acknowledged change has exactly one outbox row and one audit row",
    answered.filter(({ answer }) => answer.status === 200),
    ({ request, answer }) => {
      const change = changeOf(JSON.parse(answer.body));
      const [entry, ...more] = auditOf.get(change) ?? [];
      return eventsOf.get(change)?.length === 1 && more.length === 0 &&
        entry?.request_id === request.key && entry.action === request.action &&
        auditOfKey.get(request.key)?.length === 1;
    },
  );
}

export function versionsHaveNoGap({ entitlements, auditOfLine }: IndexedTables): Invariant {
  return invariant(
    "1. The versions of an entitlement are 1, 2, 3 … up to its current one, by turns ACTIVE and REVOKED",
    entitlements,
    (row) => {
      const history = auditOfLine.get(lineOf(row))?.toSorted((a, b) => a.version - b.version) ?? [];
      const follow = history.every(({ version, action }, i) =>
        version === i + 1 && action !== history[i - 1]?.action
      );
      const status = history.at(-1)?.action === "GRANT" ? "ACTIVE" : "REVOKED";
      return follow && history.length === row.version && row.status === status;
    },
  );
}

export function answersAreKept({ answerOf }: IndexedTables, answered: Answered[]): Invariant {
  return invariant(
    "6. The answer to an acknowledged request is stored, byte for byte",
    answered.filter(({ answer }) => answer.status === 200),
    ({ request, answer }) => {
      const stored = answerOf.get(request.key);
      return stored?.response_code === 200 && stored.response_body === answer.body;
    },
  );
}

export function refusalsLeaveNoTrace(
  { answerOf, auditOfKey }: IndexedTables,
  answered: Answered[],
): Invariant {
  return invariant(
    "6. A refused request leaves nothing but its stored refusal",
    answered.filter(({ answer }) => answer.status >= 400 && answer.status < 500),
    ({ request, answer }) => {
      const stored = answerOf.get(request.key);
      const { code } = JSON.parse(answer.body);
      // The key belongs to another request, which may have left rows of its own.
      if (code === "IDEMPOTENCY_KEY_CONFLICT") return stored !== undefined;
      if (auditOfKey.has(request.key)) return false;
      return code === "ENTITLEMENT_STATE_CONFLICT"
        ? stored?.response_code === 409 && stored.response_body === answer.body
        : stored === undefined;
    },
  );
}

/** This includes answers that never reached a client. */
export function storedAnswersAreTrue({ answers, auditOfKey }: IndexedTables): Invariant {
  return invariant(
    "6. A stored answer of a change has one audit row, a stored refusal none",
    answers,
    ({ idem_key, response_code }) =>
      (auditOfKey.get(idem_key)?.length ?? 0) === (response_code === 200 ? 1 : 0),
  );
}
