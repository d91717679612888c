// A server that answers as a test wants, where a client expects Kenri.

export interface Asked {
  path: string;
  headers: Headers;
  body: string;
}

export interface FakeService extends AsyncDisposable {
  url: string;
  asked: Asked[];
}

export function serve(answer: (request: Request) => Response | Promise<Response>): FakeService {
  const asked: Asked[] = [];
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  const server = Deno.serve(options, async (request) => {
    const { pathname, search } = new URL(request.url);
    const { headers } = request;
    asked.push({ path: pathname + search, headers, body: await request.text() });
    return answer(request);
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    asked,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}
