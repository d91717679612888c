// Pages of another site, for a browser that also opens pages of ours.

export interface Site extends AsyncDisposable {
  origin: string; // another port of this machine: another origin, but the same site
  elsewhere: string; // the same server by another name: another site
}

export function servePages(page: (url: string) => string): Site {
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    ({ url }) => new Response(page(url), { headers: { "Content-Type": "text/html" } }),
  );
  const { port } = server.addr;
  return {
    origin: `http://127.0.0.1:${port}`,
    elsewhere: `http://evil.example:${port}`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}
