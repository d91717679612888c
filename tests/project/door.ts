// A proxy in front of a service, which passes everything until it has to lose an answer.

export interface Door extends AsyncDisposable {
  url: string;
  // The next answer does not reach its caller. When `then` is called, the service has sent it.
  loseNextAnswer(then: () => Promise<void>): void;
}

export function openDoor(service: string): Door {
  const { hostname, port } = new URL(service);
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const passing = new Set<Promise<void>>();
  const open = new Set<Deno.Conn>();
  let lost: (() => Promise<void>) | undefined;

  async function pass(caller: Deno.Conn): Promise<void> {
    open.add(caller);
    try {
      const inner = await Deno.connect({ hostname, port: Number(port) });
      open.add(inner);
      const onward = copy(caller, inner);
      await copy(inner, caller, async () => {
        const then = lost;
        lost = undefined;
        await then?.();
        return then === undefined;
      });
      close(caller);
      close(inner);
      await onward;
    } catch {
      close(caller); // The service is unavailable.
    }
  }

  function close(connection: Deno.Conn): void {
    if (open.delete(connection)) connection.close();
  }

  const accepting = (async () => {
    for await (const caller of listener) {
      const one = pass(caller).finally(() => passing.delete(one));
      passing.add(one);
    }
  })();

  return {
    url: `http://127.0.0.1:${(listener.addr as Deno.NetAddr).port}`,
    loseNextAnswer: (then) => lost = then,
    [Symbol.asyncDispose]: async () => {
      listener.close();
      for (const connection of [...open]) close(connection);
      await Promise.all([accepting, ...passing]);
    },
  };
}

// Ends when one side ends, or when a chunk may not pass.
async function copy(
  from: Deno.Conn,
  to: Deno.Conn,
  mayPass: () => Promise<boolean> = () => Promise.resolve(true),
): Promise<void> {
  const buffer = new Uint8Array(16_384);
  try {
    for (;;) {
      const count = await from.read(buffer);
      if (count === null || !await mayPass()) return;
      for (let sent = 0; sent < count;) sent += await to.write(buffer.subarray(sent, count));
    }
  } catch { /* It was closed. */ }
}
