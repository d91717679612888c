import assert from "node:assert/strict";
import { freePort } from "../servers/free_port.ts";
import { Proxy } from "./proxy.ts";

Deno.test("an open link passes requests and answers", async () => {
  await using way = await openWay();
  const client = await way.connect();
  assert.equal(await client.ask("one"), "one");
  assert.equal(await client.ask("two"), "two");
});

Deno.test("a cut link ends connections and refuses new ones until it is opened again", async () => {
  await using way = await openWay();
  const client = await way.connect();
  assert.equal(await client.ask("one"), "one");
  way.proxy.set({ kind: "cut" });
  assert.equal(await client.ask("two"), "closed");
  await assert.rejects(way.connect(), Deno.errors.ConnectionRefused);
  way.proxy.set({ kind: "open" });
  assert.equal(await (await way.connect()).ask("three"), "three");
});

Deno.test("a stalled link passes nothing, and afterwards everything", async () => {
  await using way = await openWay();
  const client = await way.connect();
  way.proxy.set({ kind: "stalled" });
  const answer = client.ask("one");
  await stillness();
  assert.deepEqual(way.heard, []);
  way.proxy.set({ kind: "open" });
  assert.equal(await answer, "one");
});

Deno.test("a muted link passes the request, and its answer never arrives", async () => {
  await using way = await openWay();
  const client = await way.connect();
  way.proxy.set({ kind: "muted" });
  const answer = client.ask("one");
  while (way.heard.length === 0) await stillness();
  assert.deepEqual(way.heard, ["one"]);
  way.proxy.set({ kind: "open" });
  assert.equal(await answer, "closed");
});

Deno.test("a slow link delays every chunk in both directions", async () => {
  await using way = await openWay();
  const client = await way.connect();
  way.proxy.set({ kind: "slow", delayMs: 60 });
  const from = performance.now();
  assert.equal(await client.ask("one"), "one");
  assert.ok(performance.now() - from >= 115);
});

interface Way extends AsyncDisposable {
  proxy: Proxy;
  heard: string[]; // by the server, which sends everything back
  connect(): Promise<{ ask(text: string): Promise<string> }>;
}

async function openWay(): Promise<Way> {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const heard: string[] = [];
  const serving = (async () => {
    for await (const connection of listener) void answer(connection, heard);
  })();
  const proxy = new Proxy(freePort(), listener.addr.port);
  const clients: Deno.TcpConn[] = [];
  return await Promise.resolve({
    proxy,
    heard,
    connect: async () => {
      const client = await Deno.connect({ hostname: "127.0.0.1", port: proxy.port });
      clients.push(client);
      return { ask: (text: string) => ask(client, text) };
    },
    [Symbol.asyncDispose]: async () => {
      for (const client of clients) client.close();
      await proxy[Symbol.asyncDispose]();
      listener.close();
      await serving;
      await stillness(); // until all connections have seen it
    },
  });
}

async function ask(client: Deno.TcpConn, text: string): Promise<string> {
  const buffer = new Uint8Array(100);
  try {
    await client.write(new TextEncoder().encode(text));
    const size = await client.read(buffer);
    return size === null ? "closed" : new TextDecoder().decode(buffer.subarray(0, size));
  } catch {
    return "closed";
  }
}

async function answer(connection: Deno.TcpConn, heard: string[]): Promise<void> {
  const buffer = new Uint8Array(100);
  try {
    for (let size; (size = await connection.read(buffer)) !== null;) {
      heard.push(new TextDecoder().decode(buffer.subarray(0, size)));
      await connection.write(buffer.subarray(0, size));
    }
  } catch {
    /* The other end is closed. */
  } finally {
    connection.close();
  }
}

function stillness(): Promise<void> {
  return new Promise((over) => setTimeout(over, 50));
}
