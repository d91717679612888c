import assert from "node:assert/strict";
import { decodeMatchmakingEvent } from "../../proto/matchmaking/decode.ts";
import { until } from "../../tools/servers/wait.ts";
import { cancel, join, joined, startMatchmaking, ticket } from "../support/matchmaking.ts";
import { natsUrl, readStream } from "../support/streams.ts";

Deno.test("M-101: two users join: one match, each is the other's peer, both are announced", async () => {
  await using service = await startMatchmaking();
  const ann = await joined(service, "ann");
  const bob = await joined(service, "bob", { mode: "Casual" });
  const [annSees, bobSees] = await Promise.all([
    ticket(service, "ann", ann, "?wait=10s"),
    ticket(service, "bob", bob, "?wait=10s"),
  ]);
  assert.equal(annSees.json.status, "MATCHED");
  assert.equal(bobSees.json.status, "MATCHED");
  assert.deepEqual(annSees.json.matched.peer_user_ids, ["bob"]);
  assert.deepEqual(bobSees.json.matched.peer_user_ids, ["ann"]);
  assert.equal(annSees.json.matched.match_id, bobSees.json.matched.match_id);
  assert.equal(await service.redis("ZCARD", "mm:{casual}:queue"), 0);
  await until(
    "both events are published",
    async () => (await readStream(natsUrl, service.stream)).length === 2,
  );
  const events = (await readStream(natsUrl, service.stream)).map(({ data }) =>
    decodeMatchmakingEvent(data)
  );
  assert.deepEqual(new Set(events.map(({ user_id }) => user_id)), new Set(["ann", "bob"]));
  await until(
    "nothing waits in Redis",
    async () => await service.redis("XLEN", "mm:{casual}:events") === 0,
  );
  const { json } = await cancel(service, "ann", ann);
  assert.equal(json.status, "MATCHED");
  console.log(await join(service, "ann", { mode: "x" }).then(({ text }) => text));
});
