// What operators see of matchmaking: the status, tickets, and events that wait.
import assert from "node:assert/strict";
import { eventIdOf } from "../../proto/matchmaking/event_id.ts";
import { until } from "../../tools/servers/wait.ts";
import { joined, type Matchmaking, startMatchmaking } from "../support/matchmaking.ts";
import { natsUrl } from "../support/streams.ts";
import { debug, matched, noWorker, ops, startUnready, startWithoutNats } from "./matchmaking.ts";

Deno.test("ops matchmaking shows who waits, what became of tickets, and what Redis can lose", async () => {
  await using service = await startMatchmaking(debug);
  await matched(service);
  await joined(service, "eve");
  const { code, output } = await ops(service, "matchmaking");
  assert.equal(code, 0);
  assert.match(output, /^casual +1 +\d+ (ms|s) +- +0 +0$/m);
  assert.match(output, /^rank +0 +- +- +0 +0$/m);
  assert.match(output, /^matches +1$/m);
  assert.match(output, /^can lose +Redis writes its file/m);
  const status = await ops(service, "status");
  assert.deepEqual([status.code, status.errors], [0, ""], status.output);
  assert.match(status.output, /tickets waiting \(casual\) +1, the oldest for/);
});

Deno.test("two users who wait while nobody pairs them are a problem, one who waits alone is none", async () => {
  await using service = await startMatchmaking({ ...debug, ...noWorker });
  await joined(service, "ann");
  await age(service, "mm:{casual}:queue", 20_000);
  assert.equal((await ops(service, "status")).code, 0);
  await joined(service, "bob");
  await age(service, "mm:{casual}:queue", 20_000);
  const { code, output } = await ops(service, "status");
  assert.equal(code, 1);
  assert.match(
    output,
    /^! two users have waited \d+ s for each other in casual: ops matchmaking$/m,
  );
});

Deno.test("tickets of one user do not wait for each other", async () => {
  await using service = await startMatchmaking({
    ...{ ...debug, ...noWorker },
    MATCHMAKING_TICKETS_PER_USER: "3",
  });
  for (let i = 0; i < 3; i++) await joined(service, "ann");
  await age(service, "mm:{casual}:queue", 20_000);
  assert.equal((await ops(service, "status")).code, 0);
  await joined(service, "bob");
  await age(service, "mm:{casual}:queue", 20_000);
  assert.equal((await ops(service, "status")).code, 1);
});

Deno.test("a ticket is shown as it is stored, with its event", async () => {
  await using service = await startMatchmaking(debug);
  const id = await matched(service);
  await until(
    "it is published",
    async () => await service.redis("XLEN", "mm:{casual}:events") === 0,
  );
  const { code, output } = await ops(service, "matchmaking", "ticket", id);
  assert.equal(code, 0);
  assert.match(output, /^status +MATCHED$/m);
  assert.match(output, /^peers +\["bob"\]$/m);
  const matchId = await service.redis("HGET", `mm:{casual}:ticket:${id}`, "match_id");
  const eventId = eventIdOf({
    event_type: "MatchFound",
    match_id: `${matchId}`,
    ...{ user_id: "ann", ticket_id: id },
  });
  assert.match(output, new RegExp(`^event +${eventId} \\(GONE\\)$`, "m"));
  for (const unknown of ["x", id.replace(/.$/, (last) => last === "0" ? "1" : "0")]) {
    assert.equal((await ops(service, "matchmaking", "ticket", unknown)).code, 1);
  }
});

Deno.test("events that wait for NATS are listed, and found by their user", async () => {
  await using service = await startMatchmaking({ ...debug, ...noWorker });
  await using alone = await startWithoutNats(service);
  await service.service.kill();
  const id = await matched(alone);
  const late = await ops(alone, "matchmaking", "late");
  assert.equal(late.output.match(/ PENDING +0 /g)?.length, 2, late.output);
  assert.match(late.output, new RegExp(id));
  const found = await ops(alone, "timeline", "--user", "ann");
  assert.match(found.output, /MatchFound +PENDING$/m);
  const [, eventId = ""] = /([0-9a-f-]{36}) .*MatchFound/.exec(found.output) ?? [];
  assert.match((await ops(alone, "timeline", eventId)).output, /matchmaking +CHANGED/);
  const look = await ops(alone, "matchmaking", "ticket", id);
  assert.match(look.output, new RegExp(`^event +${eventId} \\(WAITING\\)$`, "m"));
});

Deno.test("while Redis is unavailable, operators are told so", async () => {
  await using service = await startUnready({
    ...{ ...debug, NATS_URL: natsUrl },
    REDIS_URL: "redis://127.0.0.1:9",
  });
  const { code, errors } = await ops(service, "status");
  assert.equal(code, 3);
  assert.match(errors, /Redis can't be reached/);
});

async function age({ redis }: Matchmaking, queue: string, ms: number): Promise<void> {
  for (const id of await redis("ZRANGE", queue, "0", "-1") as string[]) {
    await redis("ZINCRBY", queue, `-${ms}`, id);
  }
}
