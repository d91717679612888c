import {
  type SendAnswer,
  type SendFailure,
  sendReasons,
  type SendRequest,
} from "@kenri/proto/send.ts";
import { KeptConnections } from "@kenri/shared/http/kept_connections.ts";
import { reasonOf } from "@kenri/shared/process/reason.ts";
import { z } from "zod";
import type { SenderAddress } from "./settings.ts";

// The way to the sender, the only process that may reach the world.

export interface Sender {
  // Throws SenderUnavailable. Nothing is known then of whether the request was made.
  send(request: SendRequest): Promise<SendAnswer | SendFailure>;
  // Judges a url without resolving its name. Throws SenderUnavailable.
  check(url: string): Promise<SendFailure | undefined>;
}

export class SenderUnavailable extends Error {
  override readonly name = "SenderUnavailable";
}

const failure = z.object({ reason_code: z.enum(sendReasons), message: z.string() });
const answer = z.union([
  z.object({
    status: z.int(),
    headers: z.record(z.string(), z.string()),
    body: z.string(),
  }),
  failure,
]);
const judgement = z.union([failure, z.record(z.string(), z.never())]);

// The sender keeps the time limit; this much later it counts as unavailable.
const answersWithinMs = 5_000;
// A caller waits for this.
const judgesWithinMs = 1_000;

export function openSender({ url, token }: SenderAddress): Sender {
  const connections = new KeptConnections(url);
  const headers = { "Authorization": `Bearer ${token}`, "Content-Type": "application/json" };
  const ask = async <Answer>(
    path: string,
    body: unknown,
    schema: z.ZodType<Answer>,
    withinMs: number,
  ) => {
    const request = { method: "POST", path, headers, body: JSON.stringify(body) };
    const { status, body: text } = await connections.ask(request, { withinMs }).catch((error) => {
      throw new SenderUnavailable(`The sender is unavailable: ${reasonOf(error)}`);
    });
    if (status === 200) return schema.parse(JSON.parse(text));
    // One order that the sender does not take must not hold up all others.
    if (status === 400 || status === 413) throw new Error(`The sender answered ${status}`);
    throw new SenderUnavailable(`The sender is unavailable: it answered ${status}`);
  };
  return {
    send: (request) => ask("/send", request, answer, request.timeout_ms + answersWithinMs),
    check: async (url) => {
      const judged = await ask("/check", { url }, judgement, judgesWithinMs);
      return isFailure(judged) ? judged : undefined;
    },
  };
}

function isFailure(judged: object): judged is SendFailure {
  return "reason_code" in judged;
}
