// Who is matched, and how each ticket ends.
import assert from "node:assert/strict";
import { commonKeys, queueOf } from "../../matchmaking/keys.ts";
import { scripts } from "../../matchmaking/scripts/scripts.ts";
import type { Script } from "../../shared/redis/script.ts";
import { until } from "../../tools/servers/wait.ts";
import { assertError } from "../support/api.ts";
import {
  age,
  cancel,
  joined,
  type Matchmaking,
  startMatchmaking,
  startReplica,
  ticket,
  untilPublished,
} from "../support/matchmaking.ts";
import { scrapeOf, valueOf } from "../support/metrics.ts";
import { startWithInboxes } from "./with_inboxes.ts";

const counted = async (service: { url: string }, result: string) =>
  valueOf(await scrapeOf(service), "mm_match_total", { result });

Deno.test("M-101: two users join: one match, each is the other's peer, both are notified, the queue is empty", async () => {
  await using service = await startWithInboxes();
  const ann = await joined(service, "ann");
  const waiting = ticket(service, "ann", ann, "?wait=30s");
  const bob = await joined(service, "bob", { mode: "Casual" });
  const [annSees, bobSees] = await Promise.all([
    waiting,
    ticket(service, "bob", bob, "?wait=30s"),
  ]);
  const { matched } = annSees.json;
  assert.deepEqual(annSees.json, {
    ticket_id: ann,
    status: "MATCHED",
    expires_at: annSees.json.expires_at,
    matched: { ...matched, peer_user_ids: ["bob"], session: {} },
  });
  assert.deepEqual(bobSees.json.matched, { ...matched, peer_user_ids: ["ann"] });
  for (const name of ["queue", "expiring"]) {
    assert.equal(await service.redis("ZCARD", `mm:{casual}:${name}`), 0, name);
  }
  const events = await untilPublished(service, 2);
  assert.deepEqual(
    events.map(({ event_type, user_id, ticket_id, peer_user_ids, match_id, mode }) => (
      { event_type, user_id, ticket_id, peer_user_ids, match_id, mode }
    )).sort((one, other) => one.user_id < other.user_id ? -1 : 1),
    [["ann", ann, "bob"], ["bob", bob, "ann"]].map(([user_id, ticket_id, peer]) => ({
      ...{ event_type: "MatchFound", user_id, ticket_id, peer_user_ids: [peer] },
      ...{ match_id: matched.match_id, mode: "casual" },
    })),
  );
  const sent = await service.sent(2);
  assert.deepEqual(sent.map(({ user_id, type }) => [user_id, type]).sort(), [
    ["ann", "MatchFound"],
    ["bob", "MatchFound"],
  ]);
  assert.equal(await counted(service, "matched"), 1);
});

Deno.test("M-101: who waits for a match hears of it at once", async () => {
  await using service = await startMatchmaking();
  const tookMs: number[] = [];
  for (let round = 0; round < 4; round++) {
    const ann = await joined(service, `ann-${round}`);
    const waiting = ticket(service, `ann-${round}`, ann, "?wait=30s");
    await joined(service, `bob-${round}`);
    const began = performance.now();
    assert.equal((await waiting).json.status, "MATCHED");
    tookMs.push(performance.now() - began);
  }
  assert.ok(Math.min(...tookMs) < 1_000, `${tookMs} ms`);
});

Deno.test("M-103: a user is never matched with themselves, whatever keys they use", async () => {
  await using service = await startMatchmaking({ MATCHMAKING_TICKETS_PER_USER: "3" });
  const own = [];
  for (let n = 0; n < 3; n++) own.push(await joined(service, "ann", { key: `key-${n}` }));
  await until("the worker has looked at them", async () => {
    const waits = valueOf(await scrapeOf(service), "mm_queue_depth", { mode: "casual" });
    return waits === 3;
  });
  await joined(service, "bob");
  const [first, ...others] = own;
  const { json } = await ticket(service, "ann", first ?? "", "?wait=10s");
  assert.deepEqual(json.matched.peer_user_ids, ["bob"]);
  await joined(service, "cem");
  for (const id of others.slice(0, 1)) {
    const { json } = await ticket(service, "ann", id, "?wait=10s");
    assert.deepEqual(json.matched.peer_user_ids, ["cem"], "the older of the two");
  }
  assert.equal((await ticket(service, "ann", own[2] ?? "", "?wait=2s")).json.status, "QUEUED");
  const events = await untilPublished(service, 4);
  for (const { user_id, peer_user_ids } of events) assert.ok(!peer_user_ids.includes(user_id));
});

Deno.test("M-105: an expired ticket is readable, counted and published; one that waits alone is matched when the next comes", async () => {
  await using service = await startMatchmaking();
  const ann = await joined(service, "ann");
  const waiting = ticket(service, "ann", ann, "?wait=30s");
  await age(service, ann);
  const { json } = await waiting;
  assert.deepEqual([json.status, json.matched], ["EXPIRED", null]);
  const [expired] = await untilPublished(service, 1);
  assert.deepEqual(
    [expired?.event_type, expired?.user_id, expired?.ticket_id, expired?.match_id],
    ["TicketExpired", "ann", ann, null],
  );
  assert.equal(await counted(service, "expired"), 1);
  assert.equal((await cancel(service, "ann", ann)).json.status, "EXPIRED", "it is read again");
  const bob = await joined(service, "bob");
  assert.equal((await ticket(service, "bob", bob, "?wait=2s")).json.status, "QUEUED");
  assert.equal(
    await service.redis("ZSCORE", "mm:{casual}:queue", bob),
    await service.redis("HGET", `mm:{casual}:ticket:${bob}`, "created_ms"),
    "it keeps its place in the queue",
  );
  const cem = await joined(service, "cem");
  assert.equal((await ticket(service, "cem", cem, "?wait=10s")).json.status, "MATCHED");
  assert.equal((await ticket(service, "bob", bob)).json.status, "MATCHED");
  assert.equal((await untilPublished(service, 3)).length, 3);
});

Deno.test("M-105: a ticket ends at its time without anybody asking for it", async () => {
  await using service = await startMatchmaking({ MATCHMAKING_TICKET_TTL: "1s" });
  const before = Date.now();
  const ann = await joined(service, "ann");
  const [event] = await untilPublished(service, 1);
  assert.equal(event?.event_type, "TicketExpired");
  const waited = event?.waited_ms ?? 0;
  assert.ok(waited >= 1_000 && waited < 1_500, `${waited} ms`);
  assert.ok(Date.parse(event?.occurred_at ?? "") >= before + 1_000);
  assert.equal((await ticket(service, "ann", ann)).json.status, "EXPIRED");
});

const breakages: Record<string, (service: Matchmaking, key: string) => Promise<unknown>> = {
  "it is missing": ({ redis }, key) => redis("DEL", key),
  "it has no owner": ({ redis }, key) => redis("HDEL", key, "user_id"),
  "it has an unknown state": ({ redis }, key) => redis("HSET", key, "status", "ODD"),
  "it has no time of joining": ({ redis }, key) => redis("HDEL", key, "created_ms"),
  "it never expires": ({ redis }, key) => redis("HSET", key, "expires_ms", "soon"),
  "it is no hash": async ({ redis }, key) => {
    await redis("DEL", key);
    await redis("SET", key, "text");
  },
};

Deno.test("M-106: broken and missing tickets end as INVALID and are counted, and the others are matched", async () => {
  await using service = await startMatchmaking({ MATCHMAKING_WORKER_ENABLED: "false" });
  const users = Object.keys(breakages);
  const broken: string[] = [];
  const good: [user: string, id: string][] = [];
  for (const [at, what] of users.entries()) {
    const id = await joined(service, `broken-${at}`);
    await breakages[what]?.(service, `mm:{casual}:ticket:${id}`);
    broken.push(id);
    good.push([`good-${at}`, await joined(service, `good-${at}`)]);
  }
  await using worker = await startReplica({
    settings: { ...service.settings, MATCHMAKING_WORKER_ENABLED: "true" },
  });
  for (const [user, id] of good) {
    const { json } = await ticket(service, user, id, "?wait=10s");
    assert.equal(json.status, "MATCHED");
  }
  const events = await untilPublished(service, good.length + broken.length);
  const invalid = events.filter(({ event_type }) => event_type === "TicketInvalid");
  assert.deepEqual(invalid.map(({ ticket_id }) => ticket_id).sort(), broken.toSorted());
  assert.equal(events.length, good.length + broken.length);
  assert.equal(await counted(worker, "invalid"), broken.length);
  assert.equal(await counted(worker, "matched"), good.length / 2);
  const { json } = await ticket(service, "broken-2", broken[2] ?? "");
  assert.deepEqual([json.status, json.matched], ["INVALID", null]);
  assertError(
    await ticket(service, "broken-0", broken[0] ?? ""),
    404,
    "MATCHMAKING_TICKET_NOT_FOUND",
  );
});

Deno.test("M-106: a missing ticket whose time is over is found once, by whichever step looks first", async () => {
  await using service = await startMatchmaking({ MATCHMAKING_WORKER_ENABLED: "false" });
  const id = await joined(service, "ann");
  await service.redis("DEL", `mm:{casual}:ticket:${id}`);
  await service.redis("ZADD", "mm:{casual}:expiring", "0", id);
  const keys = [...commonKeys("casual"), queueOf("casual")];
  const run = ({ text }: Script, ...args: string[]) =>
    service.redis("EVAL", text, `${keys.length}`, ...keys, ...args);
  const [, invalid] = await run(scripts.expire, "10") as number[];
  assert.equal(invalid, 1);
  assert.equal(await service.redis("EXISTS", "mm:{casual}:queue"), 0);
  assert.equal((await untilPublished(service, 1)).length, 1);
});

Deno.test("M-109: another's ticket is forbidden, and an unknown one is not found, for GET and DELETE", async () => {
  await using service = await startMatchmaking();
  const ann = await joined(service, "ann");
  const unknown = ann.replace(/[0-9a-f]{12}$/, "0".repeat(12));
  for (const ask of [ticket, cancel]) {
    const foreign = await ask(service, "bob", ann);
    assertError(foreign, 403, "MATCHMAKING_TICKET_FORBIDDEN", "the ticket belongs to another user");
    assertError(await ask(service, "ann", unknown), 404, "MATCHMAKING_TICKET_NOT_FOUND");
    const inOtherMode = ann.replace("casual", "rank");
    assertError(await ask(service, "ann", inOtherMode), 404, "MATCHMAKING_TICKET_NOT_FOUND");
  }
  assert.equal((await ticket(service, "ann", ann)).json.status, "QUEUED");
});
