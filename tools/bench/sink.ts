// Where the sends of the bench arrive: a receiver in this process, which answers 200 and notes the id.

export interface Arrival {
  id: string; // of the webhook or of the order
  at: number; // in milliseconds since 1970
  body: string;
}

export interface Sink extends AsyncDisposable {
  url: string;
  arrivals: Arrival[];
}

/** Answers after this time. */
export function startSink(answerAfterMs = 0): Sink {
  const arrivals: Arrival[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { headers } = request;
    const id = headers.get("webhook-id") ?? headers.get("idempotency-key") ?? "";
    const at = performance.timeOrigin + performance.now();
    arrivals.push({ id, at, body: await request.text() });
    if (answerAfterMs > 0) await new Promise((over) => setTimeout(over, answerAfterMs));
    return Response.json({ received: true });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}/hooks`,
    arrivals,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** Fails unless so many arrived, each once. */
export function assertArrivedOnce({ arrivals }: Sink, expected: number): void {
  const different = new Set(arrivals.map(({ id }) => id)).size;
  if (arrivals.length === expected && different === expected) return;
  throw new Error(`${arrivals.length} sends of ${different} orders arrived, not ${expected}`);
}
