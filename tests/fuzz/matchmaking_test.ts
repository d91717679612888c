// Every request to the matchmaking service is answered as its description says, and Redis keeps nothing
// that would never end.
import assert from "node:assert/strict";
import { startMatchmaking } from "../support/matchmaking.ts";
import { askAnything, credentials } from "./ask_anything.ts";

const endless = /:(events|dead|queue|expiring|buckets)/;

Deno.test("any request is answered as the API of matchmaking describes, and what it leaves in Redis has an end", async () => {
  await using service = await startMatchmaking({
    ...credentials,
    MATCHMAKING_DEBUG_ENABLED: "true",
    MATCHMAKING_MODES: "ann,bob,cid", // texts that requests often have
    MATCHMAKING_TICKET_TTL: "2s",
  });
  await askAnything(service.url, { runs: 120, rare: ["403", "404", "409", "429"] });
  const errors = service.service.log.filter(({ level }) => level === "error" || level === "fatal");
  assert.deepEqual(errors, []);
  for (const key of await service.redis("KEYS", "*") as string[]) {
    if (!endless.test(key)) assert.notEqual(await service.redis("PTTL", key), -1, key);
  }
});
