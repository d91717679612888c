import { uuidv7 } from "@kenri/shared/process/uuid.ts";
import { type Change, changed, type Status, statusAfter } from "./entitlement.ts";
import { type ErrorCode, statusOfCode } from "./errors.ts";

export interface ChangeRequest extends Change {
  storedKey: string;
  hash: string; // identifies the request: the same key with another hash is a conflict
}

// The valid answer that is stored under the key of a request. All fields are null if there is none.
export interface StoredAnswer {
  stored_hash: string | null;
  response_code: number | null;
  response_body: string | null;
}

// What the database contains for a request, read after its locks were granted.
export interface CurrentState extends StoredAnswer {
  status: "ACTIVE" | "REVOKED" | null;
  version: number | null;
  at: string; // the time for the change, later than that of the change before
}

export interface Answer {
  status: number;
  body: string;
  outcome: "applied" | "replayed" | "state_conflict" | "key_conflict" | "over_limit";
}

export interface AnswerToStore {
  request: ChangeRequest;
  answer: Answer;
  at: string;
}

// A change to commit, with its answer.
export interface Commit extends AnswerToStore {
  eventId: string;
  version: number;
}

export interface Decision {
  answer: Answer;
  commit?: Commit;
  refusal?: AnswerToStore;
}

// Decides a request by what was found under its locks. Only a first change needs capacity among the
// entitlements of its user.
export function decide(
  request: ChangeRequest,
  state: CurrentState,
  hasCapacity: boolean,
): Decision {
  const { stored_hash, status, version, at } = state;
  if (stored_hash !== null) return { answer: replayOf(request, state) ?? keyConflict };
  const current = status && version ? { status, version } : undefined;
  const next = changed(current, request.action);
  if (!next) return refuse(request, stateConflict[request.action], at);
  if (!current && !hasCapacity) return refuse(request, overLimit, at);
  const body = JSON.stringify({
    user_id: request.userId,
    stock_keeping_unit: request.stockKeepingUnit,
    status: next.status,
    version: next.version,
    updated_at: at,
  });
  const answer: Answer = { status: 200, body, outcome: "applied" };
  return {
    answer,
    commit: { request, answer, at, eventId: uuidv7(), version: next.version },
  };
}

function refuse(request: ChangeRequest, answer: Answer, at: string): Decision {
  return { answer, refusal: { request, answer, at } };
}

// The stored answer, if it belongs to the same request.
export function replayOf({ hash }: ChangeRequest, stored: StoredAnswer): Answer | undefined {
  if (stored.stored_hash !== hash) return undefined;
  const { response_code, response_body } = stored;
  return { status: response_code ?? 0, body: response_body ?? "", outcome: "replayed" };
}

function errorAnswer(outcome: Answer["outcome"], code: ErrorCode, message: string): Answer {
  return { status: statusOfCode[code], body: JSON.stringify({ code, message }), outcome };
}

const keyConflict = errorAnswer(
  "key_conflict",
  "IDEMPOTENCY_KEY_CONFLICT",
  "the Idempotency-Key was used for another request",
);
const overLimit = errorAnswer(
  "over_limit",
  "ENTITLEMENT_LIMIT_REACHED",
  "the user has as many entitlements as allowed",
);
const stateConflict = {
  GRANT: already(statusAfter.GRANT),
  REVOKE: already(statusAfter.REVOKE),
};

function already(status: Status): Answer {
  return errorAnswer("state_conflict", "ENTITLEMENT_STATE_CONFLICT", `already ${status}`);
}
