// A receiver in front of a real service: it passes everything on, sees what arrives, and can be stopped.
import { startReceiver } from "../../tools/receiver/receiver.ts";
import type { Behaviour, Received, Receiver } from "../../tools/receiver/receiver.ts";

export interface Passing extends Receiver {
  losesAnswers: boolean; // the service does what it is asked to, but its answer does not arrive
}

export async function startPassing({ url }: { url: string }): Promise<Passing> {
  const receiver = await startReceiver();
  const stopped = new AbortController();
  const passed = new Set<Promise<Behaviour>>(); // the caller may have given up on some of them
  const passing = Object.assign(receiver, {
    losesAnswers: false,
    [Symbol.asyncDispose]: async () => {
      stopped.abort();
      await Promise.allSettled(passed);
      await receiver.stop();
    },
  });
  receiver.behave(async (request) => {
    const passedOn = pass(url, request, stopped.signal);
    passed.add(passedOn);
    const answer = await passedOn.finally(() => passed.delete(passedOn));
    return passing.losesAnswers ? "close" : answer;
  });
  return passing;
}

const passedHeaders = ["Content-Type", "ETag", "Retry-After", "X-Trace-Id"];

async function pass(
  url: string,
  { method, path, headers, body }: Received,
  signal: AbortSignal,
): Promise<Behaviour> {
  headers.delete("Content-Length");
  headers.delete("Host");
  const response = await fetch(url + path, { method, headers, signal, ...(body ? { body } : {}) });
  const kept = passedHeaders.flatMap((name): [string, string][] => {
    const value = response.headers.get(name);
    return value === null ? [] : [[name, value]];
  });
  return {
    status: response.status,
    headers: Object.fromEntries(kept),
    body: await response.text(),
  };
}
