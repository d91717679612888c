// What operators change in matchmaking: dead letters are sent back, and users are erased.
import assert from "node:assert/strict";
import { until } from "../../tools/servers/wait.ts";
import { joined, startMatchmaking, ticket } from "../support/matchmaking.ts";
import { natsUrl, readStream } from "../support/streams.ts";
import { debug, matched, noWorker, ops, startWithoutNats } from "./matchmaking.ts";

const dead = "mm:{casual}:dead";

Deno.test("an event that can't be published becomes a dead letter, and is published when it is sent back", async () => {
  await using service = await startMatchmaking(debug);
  await service.redis("XADD", dead, "*", ...fieldsOf(deadEvent("ann", "ann")));
  await service.redis("XADD", "mm:{rank}:dead", "*", ...fieldsOf(deadEvent("bob", "ann")));
  const errors = await ops(service, "dead", "errors");
  assert.match(errors.output, /^matchmaking +2 +.* torn$/m);
  const list = await ops(service, "dead", "list");
  assert.match(list.output, /^matchmaking +\d+-0-casual [^]*^matchmaking +\d+-0-rank /m);
  const [id = ""] = /\d+-0-casual/.exec(list.output) ?? [];
  assert.match((await ops(service, "dead", "show", "matchmaking", id)).output, /"user_id": "ann"/);
  const sendBack = ["dead", "send-back", "matchmaking", "--error", "torn", "--reason", "repaired"];
  assert.match(
    (await ops(service, ...sendBack, "--dry-run")).output,
    /2 dead letters would be sent/,
  );
  assert.equal(await service.redis("XLEN", dead), 1);
  const sent = await ops(service, ...sendBack);
  assert.deepEqual([sent.code, sent.errors], [0, ""], sent.output);
  assert.equal((await ops(service, ...sendBack)).code, 1, "there are none any more");
  await until(
    "both are published",
    async () => (await readStream(natsUrl, service.stream)).length === 2,
  );
  const operations = await ops(service, "operations");
  assert.match(operations.output, /SEND_BACK +matchmaking +2 +kim +repaired$/m);
});

Deno.test("the dead letters of all modes are listed in the order of time, a page at a time", async () => {
  await using service = await startMatchmaking(debug);
  const modes = ["rank", "casual", "rank", "casual", "casual"];
  for (const [at, mode] of modes.entries()) {
    const fields = fieldsOf(deadEvent(`user-${at}`, "x"));
    await service.redis("XADD", `mm:{${mode}}:dead`, `${1_000 + at}-0`, ...fields);
  }
  const seen: string[] = [];
  for (let cursor = "";;) {
    const answer = await fetch(
      `${service.url}/debug/matchmaking/dead-letters?limit=2${cursor && `&cursor=${cursor}`}`,
    );
    const page = await answer.json();
    seen.push(
      ...page.dead_letters.map((one: { payload: { user_id: string } }) => one.payload.user_id),
    );
    if (!page.next_cursor) break;
    cursor = page.next_cursor;
  }
  assert.deepEqual(seen, ["user-0", "user-1", "user-2", "user-3", "user-4"]);
});

Deno.test("an erasure ends the tickets of a user, and leaves the user in no dead letter", async () => {
  await using service = await startMatchmaking({ ...debug, ...noWorker });
  const id = await joined(service, "ann");
  const other = await joined(service, "bob");
  await service.redis("XADD", dead, "*", ...fieldsOf(deadEvent("ann", "bob")));
  await service.redis("XADD", dead, "*", ...fieldsOf(deadEvent("bob", "ann")));
  const erase = ["erase-user", "ann", "--reason", "case 7"];
  const dry = await ops(service, ...erase, "--dry-run");
  assert.match(dry.output, /^tickets +1\ndead_events +2$/m);
  assert.equal((await ticket(service, "ann", id)).status, 200);
  const { code, output } = await ops(service, ...erase);
  assert.equal(code, 0, output);
  assert.match(output, /^tickets +1\ndead_events +2$/m);
  assert.equal((await ticket(service, "ann", id)).status, 404);
  assert.equal((await ticket(service, "bob", other)).json.status, "QUEUED");
  assert.deepEqual(await service.redis("ZRANGE", "mm:{casual}:queue", "0", "-1"), [other]);
  const kept = JSON.stringify(await service.redis("XRANGE", dead, "-", "+"));
  assert.match(kept, /"user_id","bob"/);
  assert.match(kept, /erased-[0-9a-f-]{36}/);
  const keys = await service.redis("KEYS", "*") as string[];
  const left = keys.filter((key) => key.includes("ann") && !key.includes(":idemp:"));
  assert.doesNotMatch(kept + left.join(), /\bann\b/);
  const operations = await ops(service, "operations");
  assert.match(operations.output, /ERASE_USER +user +1 +kim +case 7$/m);
  assert.match((await ops(service, ...erase)).output, /Nothing is known of this user/);
});

Deno.test("nothing is erased while an event that names the user waits", async () => {
  await using service = await startMatchmaking({ ...debug, ...noWorker });
  await using alone = await startWithoutNats(service);
  await service.service.kill();
  const id = await matched(alone);
  const { code, output } = await ops(alone, "erase-user", "ann", "--reason", "case 7");
  assert.equal(code, 1);
  assert.match(output, /^2 events of this user are still on the way/);
  assert.equal((await ticket(alone, "ann", id)).json.status, "MATCHED");
});

function deadEvent(user_id: string, peer: string): Record<string, string> {
  return {
    event_type: "MatchFound",
    ticket_id: `casual-${crypto.randomUUID()}`,
    user_id,
    occurred_ms: `${Date.now()}`,
    waited_ms: "5",
    trace_id: "",
    traceparent: "",
    match_id: crypto.randomUUID(),
    peers: JSON.stringify([peer]),
    ...{ dead_attempts: "10", dead_error: "torn", dead_entry: "1-0" },
  };
}

const fieldsOf = (fields: Record<string, string>) => Object.entries(fields).flat();
