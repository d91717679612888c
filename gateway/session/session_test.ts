import assert from "node:assert/strict";
import { Seals } from "./seal.ts";
import { type Session, SessionCookies } from "./session.ts";

const hourMs = 3_600_000;

const sessionAt = (issuedAtMs: number, expiresAtMs: number): Session => ({
  ...{ sessionId: crypto.randomUUID(), userId: crypto.randomUUID(), provider: "p", epoch: 7 },
  ...{ issuedAtMs, expiresAtMs, issuerSession: undefined },
});

Deno.test("a session is opened as it was sealed, until it has idled or expired, also when it is remembered", async () => {
  const sessions = new SessionCookies(new Seals([new Uint8Array(32)]), { idleMs: 12 * hourMs });
  const now = Date.now();
  const good = sessionAt(now, now + 100 * hourMs);
  const cookie = await sessions.seal(good);
  for (let i = 0; i < 2; i++) assert.deepEqual(await sessions.open(cookie), good);
  assert.equal(sessions.endOf(good), now + 12 * hourMs);
  assert.equal(sessions.endOf(sessionAt(now, now + hourMs)), now + hourMs);
  const soon = await sessions.seal(sessionAt(now, now + 1_100));
  assert.ok(await sessions.open(soon));
  await new Promise((over) => setTimeout(over, 1_150 - (Date.now() - now)));
  assert.equal(await sessions.open(soon), undefined);
});

Deno.test("a session in use gets a new cookie after a twelfth of the time that it may idle", () => {
  const sessions = new SessionCookies(new Seals([new Uint8Array(32)]), { idleMs: 12 * hourMs });
  const usedFor = (ms: number) => sessionAt(Date.now() - ms, Infinity);
  assert.equal(sessions.isToRenew(usedFor(0.9 * hourMs)), false);
  assert.equal(sessions.isToRenew(usedFor(1.1 * hourMs)), true);
});
