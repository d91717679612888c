// The sections of docs/runbook.md for matchmaking.
import assert from "node:assert/strict";
import { joined, startMatchmaking } from "../support/matchmaking.ts";
import { ownRedis } from "../support/redis.ts";
import { root } from "../../tools/root.ts";
import { debug, matched, noWorker, startWithoutNats } from "./matchmaking.ts";
import { runCommand } from "./runbook.ts";

const portOf = ({ url }: { url: string }) => ({
  MATCHMAKING_HTTP_PORT: new URL(url).port,
  KENRI_WITHOUT: "entitlement,notification,account,gateway",
  USER: "kim",
});

// A Redis of its own, because its configuration is changed, and redis-cli.
async function startOnOwnRedis(appendonly: boolean) {
  const redis = await ownRedis({ appendonly });
  const folder = await Deno.makeTempDir({ prefix: "kenri-redis-cli-" });
  const program =
    `exec "${Deno.execPath()}" run --quiet --allow-all "${root}tests/operators/redis_cli.ts"`;
  await Deno.writeTextFile(`${folder}/redis-cli`, `#!/bin/sh\n${program} "$@"\n`, { mode: 0o755 });
  const service = await startMatchmaking({ ...debug, REDIS_URL: redis.url });
  return {
    service,
    run: (heading: string, nth: number, more: Record<string, string> = {}) =>
      runCommand(heading, nth, {
        ...portOf(service),
        REDIS_URL: redis.url,
        PATH: `${folder}:${Deno.env.get("PATH")}`,
        ...more,
      }),
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await redis.close();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

Deno.test("a Redis that loses everything is told apart, and gets an append-only file", async () => {
  await using own = await startOnOwnRedis(false);
  const heading = "Redis can lose everything";
  assert.match(await own.run(heading, 0), /^can lose +Redis has no append-only file, so all/m);
  assert.match(await own.run(heading, 1), /^OK$/m);
  assert.match(await own.run(heading, 2), /^can lose +.* it can lose the last second$/m);
});

Deno.test("the state of Redis and of an invalid ticket is found with the commands of the runbook", async () => {
  await using own = await startOnOwnRedis(true);
  assert.match(await own.run("Redis is unavailable", 0), /^PONG$/m);
  assert.match(
    await own.run("Redis is unavailable", 1),
    /^used_memory_human:[^]*maxmemory_policy:/m,
  );
  const heading = "Tickets are invalid";
  const TICKET_ID = await joined(own.service, "ann");
  const shown = await own.run(heading, 0, { TICKET_ID });
  assert.match(shown, /^status +QUEUED$[^]*noeviction[^]*evicted_keys:0/m);
  assert.match(await own.run(heading, 1), /^OK$/m);
});

Deno.test("users who could be matched and are not are found with the command of the runbook", async () => {
  await using service = await startMatchmaking({ ...debug, ...noWorker });
  await joined(service, "ann");
  const look = () => runCommand("Nobody is matched", 0, portOf(service));
  assert.match(await look(), /^casual +1 +\S+ \S+ +- /m);
  await joined(service, "bob");
  assert.match(await look(), /^casual +2 +\S+ \S+ +\d+ (ms|s) /m);
});

Deno.test("matches that wait for NATS are found with the command of the runbook", async () => {
  await using service = await startMatchmaking({ ...debug, ...noWorker });
  const late = (one: { url: string }) => runCommand("Matches are not published", 0, portOf(one));
  assert.match(await late(service), /Nothing is waiting/);
  await using alone = await startWithoutNats(service);
  await service.service.kill();
  await matched(alone);
  assert.equal((await late(alone)).match(/ PENDING +0 /g)?.length, 2);
});
