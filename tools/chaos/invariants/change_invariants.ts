// The tables of the entitlement service must contain what was answered, and nothing else.
import { isChange, itemOf } from "../../load/any_request.ts";
import type { Answered } from "./invariants.ts";
import { changeOf, type IndexedTables, type Invariant, invariant, lineOf } from "./invariant.ts";

/** The change of an entitlement or of a balance that was answered with 200. */
export function changeIn({ request, answer }: Answered): string {
  const body = JSON.parse(answer.body);
  const { version } = body.transaction ?? body;
  const stock_keeping_unit = itemOf(request) ?? "";
  return changeOf({ user_id: request.user, stock_keeping_unit, version });
}

export function changesAreRecorded(
  { eventsOf, auditOf, auditOfKey }: IndexedTables,
  answered: Answered[],
): Invariant {
  return invariant(
    "1. An acknowledged change has exactly one outbox row and one audit row",
    answered.filter(({ request, answer }) => isChange(request) && answer.status === 200),
    (one) => {
      const { request } = one;
      const change = changeIn(one);
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

/** A cancel has no key, and no answer to an order is stored: both follow from their rows. */
const hasKey = ({ request: { action } }: Answered) => action !== "CANCEL" && action !== "ORDER";

export function answersAreKept({ answerOf }: IndexedTables, answered: Answered[]): Invariant {
  return invariant(
    "6. The answer to an acknowledged request is stored, byte for byte",
    answered.filter((one) => hasKey(one) && one.answer.status < 300),
    ({ request, answer }) => {
      const stored = answerOf.get(request.key);
      return stored?.response_code === answer.status && stored.response_body === answer.body;
    },
  );
}

/** Refusals that are stored under the key of their request. */
const stored = ["ENTITLEMENT_STATE_CONFLICT", "INSUFFICIENT_POINTS", "POINTS_LIMIT_REACHED"];

export function refusalsLeaveNoTrace(
  { answerOf, auditOfKey, reservationsOfKey }: IndexedTables,
  answered: Answered[],
): Invariant {
  return invariant(
    "6. A refused request leaves nothing but its stored refusal",
    answered.filter((one) => hasKey(one) && one.answer.status >= 400 && one.answer.status < 500),
    ({ request, answer }) => {
      const found = answerOf.get(request.key);
      const { code } = JSON.parse(answer.body);
      // The key belongs to another request, which may have left rows of its own.
      if (code === "IDEMPOTENCY_KEY_CONFLICT") return found !== undefined;
      if (auditOfKey.has(request.key) || reservationsOfKey.has(request.key)) return false;
      return stored.includes(code)
        ? found?.response_code === 409 && found.response_body === answer.body
        : found === undefined;
    },
  );
}

/** This includes answers that never reached a client. */
export function storedAnswersAreTrue(
  { answers, auditOfKey, reservationsOfKey }: IndexedTables,
): Invariant {
  return invariant(
    "6. A stored answer of a change has one audit row, of a reservation one row, a stored refusal none",
    answers,
    ({ idem_key, response_code }) =>
      (auditOfKey.get(idem_key)?.length ?? 0) === (response_code === 200 ? 1 : 0) &&
      (reservationsOfKey.get(idem_key)?.length ?? 0) === (response_code === 202 ? 1 : 0),
  );
}
