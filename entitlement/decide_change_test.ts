import assert from "node:assert/strict";
import { decide, type Situation } from "./decide_change.ts";
import type { Action, Change } from "./entitlement.ts";

const nothing: Situation = {
  status: null,
  version: null,
  at: "2026-01-02T03:04:05.678901Z",
  eventId: "00000000-0000-7000-8000-000000000001",
  hasCapacity: true,
  holdsReservation: false,
};

function change(action: Action): Change {
  return {
    ...{ action, userId: "ann", stockKeepingUnit: "book", reason: "purchase", purchaseId: "p-1" },
    ...{ caller: "", idempotencyKey: "key-1", traceId: "trace", traceparent: null },
  };
}

function decided(action: Action, situation: Partial<Situation>) {
  const { answer, effects } = decide(change(action), { ...nothing, ...situation });
  const { version, code } = JSON.parse(answer.body);
  const written = effects.map((effect) =>
    effect.kind === "done" ? "done" : `${effect.kind} ${effect.version}`
  );
  return [answer.status, code ?? version, written];
}

const written = (version: number) => [`event ${version}`, `change ${version}`];

Deno.test("a change that changes the status has an event and the next version, and any other is refused", () => {
  const conflict = [409, "ENTITLEMENT_STATE_CONFLICT", []];
  assert.deepEqual(decided("GRANT", {}), [200, 1, written(1)]);
  assert.deepEqual(decided("REVOKE", {}), [200, 1, written(1)]);
  assert.deepEqual(decided("REVOKE", { status: "ACTIVE", version: 3 }), [200, 4, written(4)]);
  assert.deepEqual(decided("GRANT", { status: "REVOKED", version: 4 }), [200, 5, written(5)]);
  assert.deepEqual(decided("GRANT", { status: "ACTIVE", version: 3 }), conflict);
  assert.deepEqual(decided("REVOKE", { status: "REVOKED", version: 4 }), conflict);
});

Deno.test("only a first change needs capacity", () => {
  const full = { hasCapacity: false };
  assert.deepEqual(decided("GRANT", full), [409, "ENTITLEMENT_LIMIT_REACHED", []]);
  assert.deepEqual(decided("GRANT", { ...full, status: "REVOKED", version: 1 })[0], 200);
});

Deno.test("a decision depends only on the change and the situation, and leaves both as they are", () => {
  const [given, found] = [Object.freeze(change("GRANT")), Object.freeze(nothing)];
  assert.deepEqual(decide(given, found), decide(given, found));
});
