import assert from "node:assert/strict";
import {
  after,
  decide,
  type Effect,
  type Kind,
  mostPoints,
  type PointsChange,
  type Situation,
} from "./points.ts";
import { leaseLost, type ReservationRow } from "./reservations.ts";

const empty: Situation = {
  balance: 0,
  version: 0,
  maxBalance: mostPoints,
  id: "00000000-0000-7000-8000-000000000001",
  at: "2026-01-02T03:04:05.678901Z",
  knownId: null,
  keyIsReserved: false,
  holdsReservation: false,
};

const row = { id: "00000000-0000-7000-8000-000000000002" } as ReservationRow;

function change(kind: Kind, pointAmount: number, more: Partial<PointsChange> = {}): PointsChange {
  return {
    ...{ kind, userId: "ann", unit: "points", pointAmount, source: "campaign", sourceId: "c-1" },
    ...{ caller: "", idempotencyKey: "key-1", traceId: "trace", traceparent: null, ...more },
  };
}

function summary(effects: Effect[]): string[] {
  return effects.map((effect) =>
    effect.kind === "done"
      ? `done ${effect.transactionId}`
      : `${effect.kind} ${effect.amount} ${effect.balance} ${effect.version}`
  );
}

function decided(given: PointsChange, situation: Partial<Situation> = {}) {
  const { answer, effects } = decide(given, { ...empty, ...situation });
  return [answer.status, JSON.parse(answer.body).code ?? answer.outcome, summary(effects)];
}

Deno.test("points are added and taken, each time with an event and the next version", () => {
  const written = (end: string) => [200, "applied", [`event ${end}`, `transaction ${end}`]];
  assert.deepEqual(decided(change("GRANT", 5)), written("5 5 1"));
  assert.deepEqual(decided(change("SPEND", 5), { balance: 5, version: 7 }), written("-5 0 8"));
});

Deno.test("no balance becomes negative or exceeds its limit, down to the last point", () => {
  const refused = (code: string) => [409, code, []];
  assert.deepEqual(decided(change("SPEND", 6), { balance: 5 }), refused("INSUFFICIENT_POINTS"));
  const full = { balance: mostPoints - 1 };
  assert.equal(decided(change("GRANT", 1), full)[0], 200);
  assert.deepEqual(decided(change("GRANT", 2), full), refused("POINTS_LIMIT_REACHED"));
  const lowered = { balance: 10, maxBalance: 5 };
  assert.deepEqual(decided(change("GRANT", 1), lowered), refused("POINTS_LIMIT_REACHED"));
  assert.equal(decided(change("SPEND", 1), lowered)[0], 200);
});

Deno.test("a key that a transaction or a reservation has is a conflict, whatever the balance", () => {
  const conflict = [409, "IDEMPOTENCY_KEY_CONFLICT", []];
  assert.deepEqual(decided(change("GRANT", 1), { knownId: "known" }), conflict);
  assert.deepEqual(decided(change("SPEND", 1), { keyIsReserved: true }), conflict);
});

Deno.test("a due reservation is done with its transaction, or not at all", () => {
  const due = change("GRANT", 5, { reservation: row });
  const held = { ...empty, holdsReservation: true };
  assert.equal(decide(due, empty).answer, leaseLost);
  assert.deepEqual(decide(due, empty).effects, []);
  assert.deepEqual(summary(decide(due, held).effects), [
    ...["event 5 5 1", "transaction 5 5 1", `done ${empty.id}`],
  ]);
  assert.deepEqual(decide(due, { ...held, maxBalance: 4 }).effects, []);
  assert.deepEqual(summary(decide(due, { ...held, knownId: "known" }).effects), ["done known"]);
});

Deno.test("the times of transactions that share a commit increase by a microsecond, or by the clock", () => {
  const next = (at: string, found: string) => {
    const earlier = decide(change("GRANT", 5), { ...empty, at }).effects;
    return after(earlier, { ...empty, at: found }).at;
  };
  const at = "2026-01-02T03:04:05.678901Z";
  assert.equal(next(at, at), "2026-01-02T03:04:05.678902Z");
  assert.equal(next(at, "2026-01-02T03:04:05.678900Z"), "2026-01-02T03:04:05.678902Z");
  assert.equal(next(at, "2026-01-02T03:04:05.678999Z"), "2026-01-02T03:04:05.678999Z");
  assert.equal(next("2026-12-31T23:59:59.999999Z", at), "2027-01-01T00:00:00.000000Z");
});

Deno.test("changes of one balance that share a commit follow each other", () => {
  const earlier: Effect[] = [];
  for (const amount of [5, 20, 7]) {
    const situation = after(earlier, empty);
    earlier.push(...decide(change("GRANT", amount), situation).effects);
    const { answer, effects } = decide(change("SPEND", 10), after(earlier, empty));
    assert.equal(answer.status, earlier.length > 2 ? 200 : 409);
    earlier.push(...effects);
  }
  const transactions = earlier.filter(({ kind }) => kind === "transaction");
  assert.deepEqual(summary(transactions), [
    ...["transaction 5 5 1", "transaction 20 25 2", "transaction -10 15 3"],
    ...["transaction 7 22 4", "transaction -10 12 5"],
  ]);
});
