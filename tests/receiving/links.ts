// A link between a client and a server that delays or changes what it carries.
import { Buffer } from "node:buffer";

export interface Link extends AsyncDisposable {
  url: string;
}

export interface LinkOptions {
  delayMs?: number; // each way
  rewrite?: (text: string) => string; // changes what the server sends; must keep its length
}

/** Redirects the announcement that a pull has ended to a subscription that does not exist. */
export function forgetful(text: string): string {
  return text.replaceAll(
    /(HMSG \S+ )(\d+)( \d+ \d+\r\nNATS\/1\.0 408)/g,
    (_, before, subscription, after) => before + "9".repeat(subscription.length) + after,
  );
}

export function startLink(
  serverUrl: string,
  { delayMs = 0, rewrite = (text) => text }: LinkOptions,
): Link {
  const { hostname, port, host, href } = new URL(serverUrl);
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open = new Set<Deno.TcpConn>();
  const pass = async (
    from: Deno.TcpConn,
    to: Deno.TcpConn,
    change: (bytes: Uint8Array) => Uint8Array,
  ) => {
    const late: Promise<void>[] = [];
    for await (const bytes of from.readable) {
      const writer = late.at(-1) ?? Promise.resolve();
      const due = new Promise<void>((over) => setTimeout(over, delayMs));
      late.push(
        Promise.all([writer, due]).then(async () => void await to.write(change(bytes)))
          .catch(() => {}), // the other end is closed
      );
      late.splice(0, late.length - 1);
    }
    await late.at(-1);
  };
  const changed = (bytes: Uint8Array) =>
    Buffer.from(rewrite(Buffer.from(bytes).toString("latin1")), "latin1");
  const accepting = (async () => {
    for await (const near of listener) {
      const far = await Deno.connect({ hostname, port: Number(port) });
      open.add(near).add(far);
      void pass(near, far, (bytes) => bytes).catch(() => {});
      void pass(far, near, changed).catch(() => {});
    }
  })();
  return {
    url: href.replace(host, `127.0.0.1:${(listener.addr as Deno.NetAddr).port}`),
    [Symbol.asyncDispose]: async () => {
      for (const one of open) {
        try {
          one.close();
        } catch { /* It is closed already. */ }
      }
      listener.close();
      await accepting;
      await new Promise((over) => setTimeout(over, delayMs));
    },
  };
}
