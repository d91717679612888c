// More clients than there is room for, none of which goes on: they are let go, and hold nobody up.
import assert from "node:assert/strict";
import { freePort } from "../../tools/servers/free_port.ts";
import { grant } from "../support/api.ts";
import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import { memoryOf } from "../../tools/servers/memory.ts";
import { changeHead, connectTo, type RawConnection } from "./raw_http.ts";
import { inTime, until } from "../../tools/servers/wait.ts";

Deno.test("when no more connections can be accepted, all are closed and the service listens again", async () => {
  await using kenri = await startEntitlement({ ENTITLEMENT_HTTP_PORT: `${freePort()}` });
  assert.equal((await grant(kenri.url)).status, 200);
  await limitOpenFiles(kenri, 100);
  const crowd = await connectMany(kenri.url, 200);
  try {
    const serves = () => grant(kenri.url, { user_id: "bob" }, "bob").then(isDone, () => false);
    await until("it serves again", serves);
    assert.equal(await inTime("the first is let go", answerTo(crowd[0])), undefined);
  } finally {
    for (const client of crowd) client[Symbol.dispose]();
  }
  assert.equal((await kenri.counts()).outbox_events, 2);
  assert.equal(await kenri.service.stop(), 0);
});

Deno.test("thousands of unfinished bodies take little memory, and a new client is served", async () => {
  await using kenri = await startEntitlement();
  assert.equal((await grant(kenri.url)).status, 200);
  const before = memoryOf(kenri.service.pid).mebibytes;
  const crowd = await connectMany(kenri.url, 4_000);
  try {
    const half = changeHead("Idempotency-Key: half", "Content-Length: 1000") + "{";
    for (const client of crowd) await client.send(half);
    assert.equal((await grant(kenri.url, { user_id: "bob" })).status, 200);
    const grown = memoryOf(kenri.service.pid).mebibytes - before;
    // 40 KiB each are 156 MiB, and with Deno's own buffers it is 160 KiB each: the bound lies between.
    assert.ok(grown < 320, `${grown} MiB`);
  } finally {
    for (const client of crowd) client[Symbol.dispose]();
  }
  assert.equal((await kenri.counts()).outbox_events, 2);
});

const answerTo = async (client?: RawConnection) => await client?.answer();
const isDone = ({ status }: { status: number }) => status === 200;

async function limitOpenFiles({ service }: Entitlement, more: number): Promise<void> {
  const open = (await Array.fromAsync(Deno.readDir(`/proc/${service.pid}/fd`))).length;
  const { success } = await new Deno.Command("prlimit", {
    args: [`--pid=${service.pid}`, `--nofile=${open + more}`],
  }).output();
  assert.ok(success);
}

async function connectMany(url: string, count: number): Promise<RawConnection[]> {
  const connections: RawConnection[] = [];
  for (let i = 0; i < count; i++) {
    const connection = await connectTo(url).catch(() => undefined);
    if (connection) connections.push(connection);
  }
  return connections;
}
