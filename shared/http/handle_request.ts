import { Connections } from "./connections.ts";
import { ApiError, unavailable } from "./errors.ts";
import { protect } from "./headers.ts";
import { countRefusal } from "./limits.ts";
import { refuseBadHead } from "./request_head.ts";
import { answerUnrouted, observeUnrouted } from "./route.ts";
import { RequestSlot, Slots } from "./slots.ts";

// The path of a request from the network to the application, and of its answer back.

export interface App {
  fetch(request: Request, slot: RequestSlot): Response | Promise<Response>;
}

export type Handler = Deno.ServeHandler<Deno.NetAddr>;

export function requestHandler(app: App, requestsAtOnce: number, stop: AbortSignal): Handler {
  const connections = new Connections();
  const slots = new Slots(requestsAtOnce);
  const isProbe = probes();
  return async (request, info) => {
    if (stop.aborted) return protect(refuseWhileStopping());
    const { remoteAddr } = info;
    const begun = connections.begin(remoteAddr);
    const turn = begun instanceof Promise ? await begun : begun;
    if (turn === undefined) return protect(refuseWithoutBody());
    const slot = new RequestSlot(slots, remoteAddr.hostname);
    const end = () => {
      connections.end(turn);
      slot.release();
    };
    let isBeingSent = false;
    try {
      const answer = protect(refusedHead(request) ?? await app.fetch(request, slot));
      // The body is looked at last, because that makes it a stream.
      if (slot.isOfCaller && !isProbe() || answer.body === null) return answer;
      const streamed = await asStream(answer);
      turn.untilSent = info.completed.then(end, end);
      isBeingSent = true;
      return streamed;
    } finally {
      if (!isBeingSent) end();
    }
  };
}

function refusedHead(request: Request): Response | undefined {
  try {
    refuseBadHead(request);
    return undefined;
  } catch (error) {
    if (error instanceof ApiError) return answerUnrouted(error);
    throw error;
  }
}

// The connection ends with this answer, so that the client's next request can reach another
// replica.
function refuseWhileStopping(): Response {
  const refusal = answerUnrouted(
    unavailable("the service is stopping, try again with the same Idempotency-Key"),
  );
  refusal.headers.set("Connection", "close");
  return refusal;
}

// Only HTTP/2 can send a request that has to be refused here. An answer without a body is sent even
// if the client reads nothing.
function refuseWithoutBody(): Response {
  countRefusal("per_connection");
  observeUnrouted(503);
  return new Response(null, { status: 503, headers: { "Retry-After": "1" } });
}

// Only a streamed answer lets us know when it has been sent, but streaming takes as long as a
// small request. So of the answers to known callers only some are streamed, which is enough to find
// a client that reads none. They are chosen at random: a client that could predict them would read
// only those.
const maxAnswersPerProbe = 32;

function probes(): () => boolean {
  let answersLeft = 1;
  return () => {
    if (--answersLeft > 0) return false;
    answersLeft = 1 + Math.floor(Math.random() * maxAnswersPerProbe);
    return true;
  };
}

async function asStream(answer: Response): Promise<Response> {
  const { status, headers } = answer;
  if (headers.get("Content-Type") === "text/event-stream") return answer;
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => {
      controller.enqueue(bytes);
      controller.close();
    },
  });
  headers.set("Content-Length", `${bytes.length}`);
  return new Response(stream, { status, headers });
}
