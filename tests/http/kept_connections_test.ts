// Connections to a server: kept, and never the reason why something is sent twice.
import assert from "node:assert/strict";
import { KeptConnections, type Limits } from "@kenri/shared/http/kept_connections.ts";

type Answer = (request: string, connection: Deno.Conn, before: number) => Promise<unknown>;

/** A server that reads one request after the other from each connection. */
function startServer(answer: Answer) {
  const requests: string[] = [];
  const opened: Deno.Conn[] = [];
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const serve = async (connection: Deno.Conn) => {
    const buffer = new Uint8Array(4_096);
    for (let before = 0;; before++) {
      const read = await connection.read(buffer);
      if (read === null) return;
      const request = new TextDecoder().decode(buffer.subarray(0, read));
      requests.push(request);
      await answer(request, connection, before);
    }
  };
  const serving = (async () => {
    for await (const connection of listener) {
      opened.push(connection);
      void serve(connection).catch(() => {});
    }
  })();
  const connections = new KeptConnections(`http://127.0.0.1:${listener.addr.port}`);
  return {
    requests,
    opened,
    post: (body: string, limits: Partial<Limits> = {}, more: Record<string, string> = {}) => {
      const headers = { "Content-Type": "text/plain", ...more };
      const request = { method: "POST", path: "/send", headers, body };
      return connections.ask(request, { withinMs: 5_000, ...limits });
    },
    async [Symbol.asyncDispose]() {
      connections.close();
      listener.close();
      await serving;
      for (const connection of opened) close(connection);
    },
  };
}

function close(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch { /* It was closed by the answer. */ }
}

const write = (connection: Deno.Conn, text: string) =>
  connection.write(new TextEncoder().encode(text));
const ok = (body: string, more = "") =>
  `HTTP/1.1 200 OK\r\n${more}Content-Length: ${
    new TextEncoder().encode(body).length
  }\r\n\r\n${body}`;

Deno.test("requests one after the other use one connection, requests at once one each", async () => {
  await using server = startServer((_, connection) => write(connection, ok("é")));
  for (let i = 0; i < 3; i++) {
    const { status, body } = await server.post("ü");
    assert.deepEqual({ status, body }, { status: 200, body: "é" });
  }
  assert.equal(server.opened.length, 1);
  assert.match(server.requests[0] ?? "", /^POST \/send HTTP\/1.1\r\nHost: 127.*\r\n\r\nü$/s);
  await Promise.all([server.post("a"), server.post("b")]);
  assert.equal(server.opened.length, 2);
});

Deno.test("a request is written once, also if its kept connection closes before the answer", async () => {
  await using server = startServer(async (_, connection, before) => {
    if (before > 0) return connection.close();
    await write(connection, ok(""));
  });
  await server.post("1");
  await assert.rejects(server.post("2"), /closed before the answer/);
  assert.equal(server.requests.length, 2);
  assert.equal((await server.post("3")).status, 200);
});

Deno.test("after a failure no kept connection is used, because the server may have ended", async () => {
  await using server = startServer(async (request, connection) => {
    if (request.endsWith("fail")) return connection.close();
    await new Promise((both) => setTimeout(both, 20));
    await write(connection, ok(""));
  });
  await Promise.all([server.post("1"), server.post("2")]);
  await assert.rejects(server.post("fail"));
  await server.post("3");
  assert.equal(server.opened.length, 3);
});

Deno.test("an answer may come in pieces, and larger than the first buffer", async () => {
  const body = "x".repeat(50_000);
  await using server = startServer(async (_, connection) => {
    const bytes = new TextEncoder().encode(ok(body));
    for (let at = 0; at < bytes.length;) {
      if (at > 0) await new Promise((next) => setTimeout(next, 1));
      at += await connection.write(bytes.subarray(at, at + (at < 40 ? 7 : 9_000)));
    }
  });
  assert.equal((await server.post("")).body, body);
});

Deno.test("an answer that is late, too large, or of unknown length is none", async () => {
  await using silent = startServer(() => Promise.resolve());
  await assert.rejects(silent.post("", { withinMs: 50 }), /no answer within 50 ms/);
  await using endless = startServer((_, connection) =>
    write(connection, `HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n${"x".repeat(300_000)}`)
  );
  await assert.rejects(endless.post(""), /too large/);
  await using unknown = startServer((_, connection) =>
    write(connection, "HTTP/1.1 200 OK\r\n\r\n")
  );
  await assert.rejects(unknown.post(""), /does not state its length/);
});

Deno.test("a connection that the server is about to close is not used again", async () => {
  await using server = startServer((_, connection) =>
    write(connection, ok("", "Connection: close\r\n"))
  );
  await server.post("1");
  await server.post("2");
  assert.equal(server.opened.length, 2);
});

Deno.test("a fresh connection is not one that was kept, and is not kept", async () => {
  await using server = startServer((_, connection) => write(connection, ok("")));
  await server.post("1");
  await server.post("2", { isFresh: true });
  await server.post("3");
  assert.equal(server.opened.length, 2);
  assert.match(server.requests[1] ?? "", /\r\nConnection: close\r\n/);
});

Deno.test("an answer in chunks is read, also in pieces and with trailers", async () => {
  const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  await using server = startServer(async (_, connection) => {
    for (
      const part of [
        head,
        "4;a=b\r\nab",
        "cd\r\n1",
        "0\r\n",
        "0123456789abcdef\r\n0\r",
        "\nX: y\r\n\r\n",
      ]
    ) {
      await write(connection, part);
      await new Promise((next) => setTimeout(next, 2));
    }
  });
  for (let i = 0; i < 2; i++) assert.equal((await server.post("")).body, "abcd0123456789abcdef");
  assert.equal(server.opened.length, 1);
  await using broken = startServer((_, connection) => write(connection, `${head}x\r\n`));
  await assert.rejects(broken.post(""), /broken chunk/);
  await using longer = startServer((_, connection) => write(connection, `${head}1\r\nab\r\n`));
  await assert.rejects(longer.post(""), /broken chunk/);
});

Deno.test("an answer without a body is complete with its head", async () => {
  await using server = startServer((_, connection) =>
    write(connection, "HTTP/1.1 204 No Content\r\n\r\n")
  );
  assert.equal((await server.post("")).status, 204);
});

Deno.test("a connection on which more than the answer came is not used again", async () => {
  await using server = startServer((_, connection) => write(connection, ok("mine") + ok("yours")));
  for (let i = 0; i < 2; i++) assert.equal((await server.post("")).body, "mine");
  assert.equal(server.opened.length, 2);
});

Deno.test("a shared signal ends a request, and a line break in a header sends nothing", async () => {
  await using silent = startServer(() => Promise.resolve());
  await assert.rejects(silent.post("", { end: AbortSignal.timeout(50) }), /no answer/);
  await assert.rejects(silent.post("", { end: AbortSignal.abort() }), /no answer/);
  const requests = silent.requests.length;
  await assert.rejects(silent.post("", {}, { "X-Name": "a\r\nX-Other: b" }), /line break/);
  assert.equal(silent.requests.length, requests);
});
