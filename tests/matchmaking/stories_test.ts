// M-111: the stories of users, from a join to the inbox.
import assert from "node:assert/strict";
import { assertError } from "../support/api.ts";
import { age, cancel, join, joined, ticket } from "../support/matchmaking.ts";
import { startWithInboxes, type WithInboxes } from "./with_inboxes.ts";

async function inboxOf(
  service: WithInboxes,
  user: string,
  notifications: number,
): Promise<string[]> {
  const sent = await service.sent(notifications);
  return sent.filter(({ user_id }) => user_id === user).map(({ type }) => type);
}

Deno.test("M-111: a user joins twice, cancels twice and joins again; nobody is notified of that", async () => {
  await using service = await startWithInboxes();
  const first = await join(service, "ann", { key: "one" });
  assert.deepEqual((await join(service, "ann", { key: "one" })).json, first.json);
  const id = first.json.ticket_id;
  for (let n = 0; n < 2; n++) {
    const { status, json } = await cancel(service, "ann", id);
    assert.deepEqual([status, json.status, json.matched], [200, "CANCELLED", null]);
  }
  const again = await joined(service, "ann", { key: "two" });
  assert.notEqual(again, id);
  await cancel(service, "ann", again);
  assert.deepEqual(await inboxOf(service, "ann", 0), []);
});

Deno.test("M-111: nobody sees or cancels the ticket of another", async () => {
  await using service = await startWithInboxes();
  const id = await joined(service, "ann", { mode: "rank" });
  for (const ask of [ticket, cancel]) {
    assertError(await ask(service, "eve", id), 403, "MATCHMAKING_TICKET_FORBIDDEN");
  }
  assert.equal((await cancel(service, "ann", id)).json.status, "CANCELLED");
});

Deno.test("M-111: a ticket expires, and its user is notified", async () => {
  await using service = await startWithInboxes();
  const id = await joined(service, "cem");
  const waiting = ticket(service, "cem", id, "?wait=30s");
  await age(service, id);
  assert.equal((await waiting).json.status, "EXPIRED");
  assert.deepEqual(await inboxOf(service, "cem", 1), ["TicketExpired"]);
});

Deno.test("M-111: two users are matched, and each finds the match in the inbox", async () => {
  await using service = await startWithInboxes();
  const ids = { dan: await joined(service, "dan"), eva: await joined(service, "eva") };
  for (const [user, id] of Object.entries(ids)) {
    const { json } = await ticket(service, user, id, "?wait=30s");
    assert.equal(json.status, "MATCHED");
    const cancelled = await cancel(service, user, id);
    assert.deepEqual(cancelled.json, json, "a match can't be cancelled");
  }
  for (const user of ["dan", "eva"]) {
    assert.deepEqual(await inboxOf(service, user, 2), ["MatchFound"]);
  }
});
