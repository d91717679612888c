import { statusOfCode } from "../http/errors.ts";

// What a command answers, and what it does besides.

export interface Answer {
  status: number;
  body: string; // empty for 204
  outcome: Outcome;
  headers?: Record<string, string>; // not stored, so only for inputs whose answer is not stored
}

// The results of a command by which its requests are counted. The last two are decided without it.
export type Outcome = "applied" | "state_conflict" | "over_limit" | "key_conflict" | "replayed";

export interface Decision<Effect> {
  answer: Answer;
  effects: Effect[];
  repeated?: Answer; // for repeated requests, if they must not get all of the first answer
}

// A refusal is stored like every answer, except that of a key which belongs to another request.
export function refusal<Code extends string>(
  statusOfCode: Readonly<Record<Code, number>>,
  outcome: Outcome,
  code: NoInfer<Code>,
  message: string,
): Answer {
  return { status: statusOfCode[code], body: JSON.stringify({ code, message }), outcome };
}

export const keyIsUsed = "the Idempotency-Key was used for another request";

export const keyConflict: Answer = refusal(
  statusOfCode,
  "key_conflict",
  "IDEMPOTENCY_KEY_CONFLICT",
  keyIsUsed,
);
