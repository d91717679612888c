// The shop's till: sends a request until the service has said what became of it, always with the
// same key, and compares the answer with what the story knows.
import type { Step } from "./story.ts";

export interface Answer {
  status: number;
  text: string;
  replayed: boolean;
  attempts: number;
}

const giveUpMs = 30_000;
const retryMs = 250;

// A lost connection, a 500 and a 503 tell nothing: only the repeat does.
export async function send(
  url: string,
  headers: Record<string, string>,
  step: Step,
): Promise<Answer> {
  const deadline = performance.now() + giveUpMs;
  for (let attempts = 1;; attempts++) {
    const answer = await sendOnce(url, headers, step).catch((error: Error) => error);
    if (!(answer instanceof Error) && answer.status < 500) return { ...answer, attempts };
    if (performance.now() > deadline) {
      const why = answer instanceof Error ? answer.message : answer.text;
      throw new Error(`No answer to ${step.key} within ${giveUpMs / 1_000} s: ${why}`);
    }
    await new Promise((again) => setTimeout(again, retryMs));
  }
}

async function sendOnce(
  url: string,
  headers: Record<string, string>,
  { action, key, fields }: Step,
) {
  const response = await fetch(`${url}/v1/entitlements/${action}`, {
    method: "POST",
    headers: { ...headers, "Idempotency-Key": key, "Content-Type": "application/json" },
    body: JSON.stringify(fields),
    signal: AbortSignal.timeout(10_000),
    redirect: "error", // the credential is for nobody else
  });
  const replayed = response.headers.get("Idempotency-Replayed") === "true";
  return { status: response.status, text: await response.text(), replayed };
}

// What is wrong with the answers to one step; undefined where nothing is.
export function problemWith(step: Step, answers: Answer[]): string | undefined {
  const { kind, expected, key } = step;
  for (const { status, text } of answers) {
    const { code, version } = JSON.parse(text);
    if (status !== expected.status || code !== expected.code || version !== expected.version) {
      return `${key} (${kind}) was answered ${status} ${text}, not ${JSON.stringify(expected)}`;
    }
  }
  // Who had to ask again may find a replay where another sees the first answer.
  if (answers.some(({ attempts }) => attempts > 1)) return undefined;
  const replays = answers.filter(({ replayed }) => replayed).length;
  const wanted = { "repeat": 1, "double tap": 1, "change": 0, "refusal": 0, "key of another": 0 };
  if (replays !== wanted[kind]) return `${key} (${kind}) was replayed ${replays} times`;
  if (new Set(answers.map(({ text }) => text)).size > 1) return `${key} had two different answers`;
  return undefined;
}
