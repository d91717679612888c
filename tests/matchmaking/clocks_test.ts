// M-110: only the clock of Redis decides anything.
import assert from "node:assert/strict";
import { startShifted } from "../points/shifted_clock.ts";
import {
  joined,
  startMatchmaking,
  ticket,
  untilPublished,
  untilReady,
} from "../support/matchmaking.ts";
import { scrapeOf, valueOf } from "../support/metrics.ts";

const hourMs = 3_600_000;

for (const hours of [30, -30]) {
  Deno.test(`M-110: with clocks of services that are ${hours} hours off nothing changes`, async () => {
    const rules = { MATCHMAKING_TICKET_TTL: "4s", MATCHMAKING_WORKER_ENABLED: "false" };
    await using right = await startMatchmaking(rules);
    const settings = { ...right.settings, MATCHMAKING_WORKER_ENABLED: "true" };
    const shift = { ms: hours * hourMs, when: "at once" as const };
    await using wrong = await startShifted(settings, shift, "matchmaking");
    await untilReady(wrong);
    const began = Date.now();
    const isNow = (time: string, afterMs = 0) => {
      const ms = Date.parse(time) - afterMs;
      assert.ok(ms >= began - 1_000 && ms <= Date.now() + 1_000, time);
    };
    const ids = { ann: await joined(right, "ann"), bob: await joined(wrong, "bob") };
    for (const [user, id] of Object.entries(ids)) {
      const { json } = await ticket(wrong, user, id, "?wait=3s");
      assert.equal(json.status, "MATCHED");
      isNow(json.matched.matched_at);
      isNow(json.expires_at, 4_000);
    }
    const cem = await joined(wrong, "cem");
    assert.equal((await ticket(wrong, "cem", cem, "?wait=1s")).json.status, "QUEUED");
    const oldest = valueOf(await scrapeOf(wrong), "mm_queue_oldest_age_seconds", {
      mode: "casual",
    });
    assert.ok(oldest !== undefined && oldest < 10, `${oldest} s`);
    assert.equal((await ticket(right, "cem", cem, "?wait=10s")).json.status, "EXPIRED");
    const events = await untilPublished(right, 3);
    for (const { occurred_at, waited_ms } of events) {
      isNow(occurred_at);
      assert.ok(waited_ms >= 0 && waited_ms < 6_000, `${waited_ms} ms`);
    }
  });
}
