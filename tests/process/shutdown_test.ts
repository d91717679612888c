// A stop under load: accepted requests are answered, claimed rows are settled, another replica
// takes over.
import assert from "node:assert/strict";
import { type Answer, assertError, call, grant, revoke } from "../support/api.ts";
import { withClient } from "../support/databases.ts";
import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { natsUrl, readStream } from "../support/streams.ts";
import { inTime, until } from "../../tools/servers/wait.ts";

interface Sent {
  key: string;
  answer: Answer;
  turnedAway: boolean; // the first attempt failed; it was repeated with the same key
}

// Sends one change after the other to one replica until it stops, then to the other.
async function keepChanging(user_id: string, urls: string[], stop: AbortSignal): Promise<Sent[]> {
  const sent: Sent[] = [];
  let [url = "", other = ""] = urls;
  for (let i = 0; !stop.aborted; i++) {
    const key = `${user_id}-${i}`;
    const change = (at: string) => (i % 2 ? revoke : grant)(at, { user_id }, key);
    const first = await change(url).catch(() => undefined);
    const turnedAway = !first || first.status === 503;
    if (turnedAway) [url, other] = [other, url];
    sent.push({ key, answer: turnedAway ? await change(url) : first, turnedAway });
  }
  return sent;
}

async function underLoad(kenri: Entitlement, urls: string[], trouble: () => Promise<void>) {
  const stop = new AbortController();
  const clients = Array.from(
    { length: 24 },
    (_, i) => keepChanging(`user-${i}`, urls, stop.signal),
  );
  const changes = async () => (await kenri.counts()).outbox_events;
  const goOn = async () => {
    const before = await changes();
    await until("changes are made", async () => await changes() > before + 500);
  };
  try {
    await goOn();
    await trouble();
    await goOn();
  } finally {
    stop.abort();
  }
  return (await Promise.all(clients)).flat();
}

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  Deno.test(`after ${signal} every accepted request is answered, and another replica takes over`, async () => {
    await using kenri = await startEntitlement();
    await using replica = await startService("entitlement", kenri.settings);
    let seconds = Infinity;
    const sent = await underLoad(kenri, [kenri.url, replica.url], async () => {
      const stoppedAt = performance.now();
      kenri.service.signal(signal);
      assert.equal(await inTime("it ends", kenri.service.exited), 0);
      seconds = (performance.now() - stoppedAt) / 1_000;
    });

    assert.ok(seconds < 5, `${seconds} s`);
    assert.deepEqual(kenri.service.log.filter(({ level }) => level === "error"), []);
    assert.ok(sent.some(({ turnedAway }) => turnedAway), "the stop was not noticed");
    for (const { key, answer, turnedAway } of sent) {
      assert.equal(answer.status, 200, `${key}: ${answer.text}`);
      // A replayed answer would mean that the change was committed and its answer lost.
      const replayed = answer.headers.get("Idempotency-Replayed") === "true";
      assert.ok(!(turnedAway && replayed), `${key} was committed but not answered`);
      assert.equal(answer.json.version, Number(key.split("-")[2]) + 1, key);
    }
    const { outbox_events, entitlement_audit, idempotency_keys } = await kenri.counts();
    assert.deepEqual([outbox_events, entitlement_audit, idempotency_keys], [
      sent.length,
      sent.length,
      sent.length,
    ]);

    await until("all is published", async () => (await unfinished(kenri)).length === 0);
    assert.equal(await replica.stop(), 0);
    const events = await readStream(natsUrl, kenri.stream);
    assert.equal(new Set(events.map(({ header }) => header.get("Nats-Msg-Id"))).size, sent.length);
    assert.equal(events.length, sent.length);
  });
}

function unfinished(kenri: Entitlement): Promise<{ status: string; locked_by: string | null }[]> {
  return kenri.rows(
    `select status, locked_by from outbox_events
     where status <> 'PUBLISHED' or locked_by is not null or lease_until is not null`,
  );
}

Deno.test("while it stops a replica asks clients to retry, and closes their connections", async () => {
  await using kenri = await startEntitlement();
  kenri.service.signal("SIGTERM");
  await until("it refuses", async () => (await call(`${kenri.url}/readyz`)).status === 503);
  const refusal = await grant(kenri.url, {}, "refused");
  assertError(refusal, 503, "SERVICE_UNAVAILABLE");
  assert.equal(refusal.headers.get("Retry-After"), "1");
  assert.equal(refusal.headers.get("Connection"), "close");
  assert.equal(await inTime("it ends", kenri.service.exited), 0);
  assert.equal((await kenri.counts()).idempotency_keys, 0);
});

Deno.test("the last replica leaves no row claimed", async () => {
  await using kenri = await startEntitlement();
  await Promise.all(Array.from({ length: 500 }, (_, i) => grant(kenri.url, { user_id: `u${i}` })));
  assert.equal(await kenri.service.stop(), 0);
  const left = await unfinished(kenri);
  assert.deepEqual(left.filter(({ status, locked_by }) => status !== "PENDING" || locked_by), []);
  await using replica = await startService("entitlement", kenri.settings);
  await until("the rest is published", async () => (await unfinished(kenri)).length === 0);
  assert.equal((await readStream(natsUrl, kenri.stream)).length, 500);
  assert.equal(await replica.stop(), 0);
});

Deno.test("a stop while a statement waits for a lock ends within the grace, and changes nothing", async () => {
  await using kenri = await startEntitlement({ SHUTDOWN_GRACE: "2s" });
  await withClient(kenri.database.ownerUrl, async (holder) => {
    await holder.query("begin; lock table entitlements in exclusive mode");
    const stuck = call(`${kenri.url}/livez`).then(() => grant(kenri.url)).catch(() => undefined);
    await until("it waits", async () => {
      const { rows } = await holder.query("select from pg_locks where not granted");
      return rows.length > 0;
    });
    const stoppedAt = performance.now();
    assert.equal(await kenri.service.stop(), 0);
    const ms = performance.now() - stoppedAt;
    assert.ok(ms < 2_200, `${ms} ms`);
    assert.notEqual((await stuck)?.status, 200);
    await holder.query("rollback");
  });
  await until("its transaction has ended", async () => {
    const sessions = await kenri.rows(
      "select from pg_stat_activity where application_name = 'entitlement' " +
        "and datname = current_database()",
    );
    return sessions.length === 0;
  });
  const { outbox_events, idempotency_keys } = await kenri.counts();
  assert.deepEqual([outbox_events, idempotency_keys], [0, 0]);
});
