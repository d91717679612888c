// More clients than the service can hold, none of which continues: their connections are closed,
// and other clients are served.
import assert from "node:assert/strict";
import { freePort } from "../../tools/servers/free_port.ts";
import { grant } from "../support/api.ts";
import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import { memoryOf } from "../../tools/servers/memory.ts";
import { changeHead, connectMany, type RawConnection } from "./raw_http.ts";
import { inTime, until } from "../../tools/servers/wait.ts";

Deno.test("when no more connections can be accepted, all are closed and the service listens again", async () => {
  await using kenri = await startEntitlement({ ENTITLEMENT_HTTP_PORT: `${freePort()}` });
  assert.equal((await grant(kenri.url)).status, 200);
  await limitOpenFiles(kenri, 100);
  using crowd = await connectMany(kenri.url, 200);
  const serves = () => grant(kenri.url, { user_id: "bob" }, "bob").then(isDone, () => false);
  await until("it serves again", serves);
  assert.equal(await inTime("the first connection is closed", answerTo(crowd[0])), undefined);
  assert.equal((await kenri.counts()).outbox_events, 2);
  assert.equal(await kenri.service.stop(), 0);
});

Deno.test("thousands of unfinished bodies take little memory, and a new client is served", async () => {
  await using kenri = await startEntitlement();
  assert.equal((await grant(kenri.url)).status, 200);
  const before = memoryOf(kenri.service.pid).mebibytes;
  using crowd = await connectMany(kenri.url, 4_000);
  const half = changeHead("Idempotency-Key: half", "Content-Length: 1000") + "{";
  for (const client of crowd) await client.send(half);
  assert.equal((await grant(kenri.url, { user_id: "bob" })).status, 200);
  const grown = memoryOf(kenri.service.pid).mebibytes - before;
  // Our 40 KiB per client are 156 MiB. With Deno's own buffers of 160 KiB they would be 625 MiB.
  assert.ok(grown < 320, `${grown} MiB`);
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
