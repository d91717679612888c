/**
 * A port that nobody listens on now. Another process may still take it before the server does, so
 * callers try again on a conflict.
 *
 * It lies below the range from which systems take the ports of outgoing connections (Linux: from
 * 32768, macOS: from 49152). In that range a client that reconnects to a stopped server can get the
 * server's own port as its source, connect to itself, and keep the server from coming back.
 */
export function freePort(): number {
  for (let tries = 0; tries < 100; tries++) {
    const port = 15_000 + Math.floor(Math.random() * 17_000);
    if (isFree(port)) return port;
  }
  throw new Error("No free port found on 127.0.0.1");
}

function isFree(port: number): boolean {
  try {
    Deno.listen({ hostname: "127.0.0.1", port }).close();
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.AddrInUse) return false;
    throw error;
  }
}
