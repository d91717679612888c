// Sends a request as the published client does, which repeats it under the same key until it is
// answered, and compares the answer with the one that the story expects.
import { askUntilAnswered, type Fetch } from "../../client/attempts.ts";
import type { Step } from "./story.ts";

export interface Answer {
  status: number;
  text: string;
  replayed: boolean;
  attempts: number;
}

const patience = { attemptTimeoutMs: 10_000, deadlineMs: 30_000 };

export async function send(
  url: string,
  headers: Record<string, string>,
  { action, key, fields }: Step,
): Promise<Answer> {
  let attempts = 0;
  const counting: Fetch = (url, init) => {
    attempts++;
    return fetch(url, init);
  };
  const answer = await askUntilAnswered(
    counting,
    `${url}/v1/entitlements/${action}`,
    {
      method: "POST",
      headers: { ...headers, "Idempotency-Key": key, "Content-Type": "application/json" },
      body: JSON.stringify(fields),
      redirect: "error", // the credential is for nobody else
    },
    patience,
    undefined,
  );
  const replayed = answer.headers.get("Idempotency-Replayed") === "true";
  return { status: answer.status, text: answer.text, replayed, attempts };
}

// The problem with the answers to one request; undefined if there is none.
export function problemWith(step: Step, answers: Answer[]): string | undefined {
  const { kind, expected, key } = step;
  for (const { status, text } of answers) {
    const { code, version } = JSON.parse(text);
    if (status !== expected.status || code !== expected.code || version !== expected.version) {
      return `${key} (${kind}) was answered ${status} ${text}, not ${JSON.stringify(expected)}`;
    }
  }
  // After a lost answer, the first one that arrives may be a replay.
  if (answers.some(({ attempts }) => attempts > 1)) return undefined;
  const replays = answers.filter(({ replayed }) => replayed).length;
  const wanted = { "repeat": 1, "double tap": 1, "change": 0, "refusal": 0, "key of another": 0 };
  if (replays !== wanted[kind]) return `${key} (${kind}) was replayed ${replays} times`;
  if (new Set(answers.map(({ text }) => text)).size > 1) return `${key} had two different answers`;
  return undefined;
}
