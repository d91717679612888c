import { uuidv7 } from "@kenri/shared/process/uuid.ts";
import { type Change, changed, type Status, statusAfter } from "./entitlement.ts";
import { type ErrorCode, statusOfCode } from "./errors.ts";

export interface Request extends Change {
  storedKey: string;
  hash: string;
}

// The valid answer that is stored under the key of a request, if there is one.
export interface StoredAnswer {
  stored_hash: string | null;
  response_code: number | null;
  response_body: string | null;
}

// What the database knows of a request, read after its locks were granted.
export interface Situation extends StoredAnswer {
  status: "ACTIVE" | "REVOKED" | null;
  version: number | null;
  at: string; // the time of the change, later than that of the one before
}

export interface Answer {
  status: number;
  body: string;
  outcome: "applied" | "replayed" | "state_conflict" | "key_conflict" | "over_limit";
}

// An answer to store under the key, and with it the change that it reports, if there is one.
export interface Stored {
  request: Request;
  answer: Answer;
  at: string;
}

export interface Commit extends Stored {
  eventId: string;
  version: number;
}

export interface Decision {
  answer: Answer;
  commit?: Commit;
  refusal?: Stored;
}

// What a request comes to, by what was found under its locks. For a first change there must be room
// among the entitlements of its user.
export function decide(request: Request, situation: Situation, hasCapacity: boolean): Decision {
  const { stored_hash, status, version, at } = situation;
  if (stored_hash !== null) return { answer: replayOf(request, situation) ?? keyConflict };
  const before = status && version ? { status, version } : undefined;
  const after = changed(before, request.action);
  if (!after) return refusal(request, stateConflict[request.action], at);
  if (!before && !hasCapacity) return refusal(request, overLimit, at);
  const body = JSON.stringify({
    user_id: request.userId,
    stock_keeping_unit: request.stockKeepingUnit,
    status: after.status,
    version: after.version,
    updated_at: at,
  });
  const answer: Answer = { status: 200, body, outcome: "applied" };
  return {
    answer,
    commit: { request, answer, at, eventId: uuidv7(), version: after.version },
  };
}

function refusal(request: Request, answer: Answer, at: string): Decision {
  return { answer, refusal: { request, answer, at } };
}

export function replayOf({ hash }: Request, stored: StoredAnswer): Answer | undefined {
  if (stored.stored_hash !== hash) return undefined;
  const { response_code, response_body } = stored;
  return { status: response_code ?? 0, body: response_body ?? "", outcome: "replayed" };
}

function refuse(outcome: Answer["outcome"], code: ErrorCode, message: string): Answer {
  return { status: statusOfCode[code], body: JSON.stringify({ code, message }), outcome };
}

const keyConflict = refuse(
  "key_conflict",
  "IDEMPOTENCY_KEY_CONFLICT",
  "the Idempotency-Key was used for another request",
);
const overLimit = refuse(
  "over_limit",
  "ENTITLEMENT_LIMIT_REACHED",
  "the user has as many entitlements as allowed",
);
const stateConflict = {
  GRANT: alreadyIs(statusAfter.GRANT),
  REVOKE: alreadyIs(statusAfter.REVOKE),
};

function alreadyIs(status: Status): Answer {
  return refuse("state_conflict", "ENTITLEMENT_STATE_CONFLICT", `already ${status}`);
}
