// A caller as the docs ask for: it spreads its requests over the replicas, waits as long as
// Retry-After says, and goes to the next replica where a connection is refused. Whatever else keeps a
// request from its answer is a failure, although the caller tries again.

export interface Caller {
  failures: string[];
  refusals: number; // 503 with Retry-After
  closedDoors: number; // connections that were refused, so that nothing was sent
  slowestMs: number; // from the first attempt to the answer
  call(path: string, init?: RequestInit): Promise<Response>;
}

const giveUpMs = 60_000;
const allAreGoneMs = 20;

export function startCaller(urls: string[]): Caller {
  let next = 0;
  const caller: Caller = { failures: [], refusals: 0, closedDoors: 0, slowestMs: 0, call };

  async function call(path: string, init?: RequestInit): Promise<Response> {
    const from = performance.now();
    while (performance.now() - from < giveUpMs) {
      const answer = await attempt(`${urls[next++ % urls.length]}${path}`, init);
      if (!answer) continue;
      caller.slowestMs = Math.max(caller.slowestMs, performance.now() - from);
      return answer;
    }
    throw new Error(`No answer to ${path} within ${giveUpMs} ms: ${caller.failures}`);
  }

  async function attempt(url: string, init?: RequestInit): Promise<Response | undefined> {
    let answer: Response;
    try {
      answer = await fetch(url, init);
    } catch (error) {
      if (wasNotConnected(error)) caller.closedDoors++;
      else caller.failures.push(String(error));
      return await pause(allAreGoneMs);
    }
    if (answer.status < 500) return answer;
    const body = await answer.text();
    const retryAfter = Number(answer.headers.get("Retry-After"));
    if (answer.status === 503 && retryAfter > 0) caller.refusals++;
    else caller.failures.push(`${answer.status} ${body}`);
    return await pause(retryAfter * 1_000);
  }

  return caller;
}

function wasNotConnected(error: unknown): boolean {
  const { message, cause } = error as Error;
  return /client error \(Connect\)/.test(`${message} ${cause}`);
}

async function pause(ms: number): Promise<undefined> {
  await new Promise((over) => setTimeout(over, ms));
}
