// The model of the state rules and of idempotency. From all answers that the clients saw, it checks
// that a serial order explains every answer, and computes what the tables must contain after it.
import assert from "node:assert/strict";
import { aggregateKeyOf } from "../../proto/entitlement/aggregate_key.ts";
import type { Answer } from "../../tools/load/repeating_client.ts";
import type { ChangeRequest } from "../../tools/load/change_request.ts";
import type { Observation } from "../support/changes.ts";
import type { Tables } from "./changes_tables.ts";

/** The one request that was carried out under a key, and its answer. */
interface Owner {
  request: ChangeRequest;
  traceId: string;
  answer: Answer;
  version: number; // 0 for a refusal
  updatedAt: string;
  // The request was carried out between these two times.
  from: number;
  to: number;
}

/** Throws unless a serial order explains the answers. Returns the tables that it leads to. */
export function explain(observations: Observation[]): Tables {
  const owners = [...Map.groupBy(observations, ({ request }) => request.key).values()]
    .flatMap((sameKey) => ownerOf(sameKey) ?? []);
  const byEntitlement = Map.groupBy(owners, ({ request }) => aggregateKey(request));
  const histories = [...byEntitlement.values()].map(historyOf);
  return expectedTables(owners, histories);
}

function ownerOf(sameKey: Observation[]): Owner | undefined {
  const known = sameKey.filter(({ answer }) => answer && answer.status < 500);
  const [conflicts, own] = partition(
    known,
    ({ answer }) => codeOf(answer as Answer) === "IDEMPOTENCY_KEY_CONFLICT",
  );
  const [first] = own;
  if (!first) {
    assert.equal(conflicts.length, 0, "a conflict is with a request that was carried out");
    return undefined;
  }
  const { request } = first;
  const answer = first.answer as Answer;
  for (const other of own) {
    assert.deepEqual(other.request, request, "one key is one request");
    assert.equal(other.answer?.body, answer.body, "a replay has the same bytes");
    assert.equal(other.answer?.status, answer.status, "a replay has the same status");
  }
  for (const { request: other, answer: refusal } of conflicts) {
    assert.notDeepEqual(other, request, "a conflict is with another request");
    assert.equal(refusal?.replayed, false, "a conflict is not stored");
  }
  const fresh = own.filter(({ answer }) => !answer?.replayed);
  const lost = sameKey.filter(({ answer, request: other }) =>
    (answer?.status ?? 500) >= 500 && JSON.stringify(other) === JSON.stringify(request)
  );
  assert.ok(fresh.length <= 1, "a request is carried out once");
  assert.ok(fresh.length === 1 || lost.length > 0, "what is replayed was carried out before");
  const from = fresh[0]?.sentAt ?? Math.min(...lost.map(({ sentAt }) => sentAt));
  const to = Math.min(...own.map(({ answeredAt }) => answeredAt));
  assert.ok(from < to, "no replay comes before the change was asked for");
  for (const conflict of conflicts) {
    assert.ok(from < conflict.answeredAt, "no conflict comes before the key was used");
  }
  const { version = 0, updated_at = "" } = JSON.parse(answer.body);
  const { traceId } = fresh[0] ?? lost[0] ?? first;
  return { request, traceId, answer, version, updatedAt: updated_at, from, to };
}

/** The changes of one entitlement in their order. Checks that they explain all its answers. */
function historyOf(owners: Owner[]): Owner[] {
  const [changes, refusals] = partition(owners, ({ answer }) => answer.status === 200);
  changes.sort((a, b) => a.version - b.version);
  changes.forEach((change, i) => {
    const { request, answer, version, updatedAt } = change;
    const before = changes[i - 1];
    assert.equal(version, i + 1, `versions of ${aggregateKey(request)} have no gap`);
    assert.notEqual(before?.request.action, request.action, "the same state again is refused");
    assert.ok(!before || before.updatedAt < updatedAt, "time grows with the version");
    assert.deepEqual(JSON.parse(answer.body), {
      user_id: request.user,
      stock_keeping_unit: request.sku,
      status: statusAfter[request.action],
      version,
      updated_at: updatedAt,
    });
  });
  const moments = momentsOf(changes);
  for (const { request, answer, from, to } of refusals) {
    assert.deepEqual([answer.status, JSON.parse(answer.body)], [409, {
      code: "ENTITLEMENT_STATE_CONFLICT",
      message: `already ${statusAfter[request.action]}`,
    }]);
    const held = changes.some((change, i) =>
      change.request.action === request.action &&
      Math.max(from, moments[i]?.earliest ?? 0) <= Math.min(to, moments[i + 1]?.latest ?? Infinity)
    );
    assert.ok(held, `it was not ${statusAfter[request.action]} when ${request.key} was refused`);
  }
  return changes;
}

/** When each change may have happened: in the order of versions, while its client waited. */
function momentsOf(changes: Owner[]): { earliest: number; latest: number }[] {
  const moments = changes.map(({ from, to }) => ({ earliest: from, latest: to }));
  for (let i = 1; i < moments.length; i++) {
    const [before, here] = [moments[i - 1], moments[i]];
    if (before && here) here.earliest = Math.max(here.earliest, before.earliest);
  }
  for (let i = moments.length - 1; i > 0; i--) {
    const [before, here] = [moments[i - 1], moments[i]];
    if (before && here) before.latest = Math.min(before.latest, here.latest);
  }
  for (const { earliest, latest } of moments) {
    assert.ok(earliest <= latest, "no change comes after a later version was answered");
  }
  return moments;
}

function expectedTables(owners: Owner[], histories: Owner[][]): Tables {
  const changes = histories.flat();
  return {
    entitlements: sorted(
      histories.flatMap((history) => {
        const last = history.at(-1);
        if (!last) return [];
        const timeOf = (action: string) =>
          history.findLast(({ request }) => request.action === action)?.updatedAt ?? null;
        return [{
          user_id: last.request.user,
          stock_keeping_unit: last.request.sku,
          status: statusAfter[last.request.action],
          granted_at: timeOf("GRANT"),
          revoked_at: timeOf("REVOKE"),
          source: last.request.reason,
          source_id: last.request.purchase,
          version: last.version,
          updated_at: last.updatedAt,
        }];
      }),
      ({ user_id, stock_keeping_unit }) => [user_id, stock_keeping_unit],
    ),
    keys: sorted(
      owners.map(({ request, answer }) => ({
        idem_key: request.key,
        response_code: answer.status,
        response_body: answer.body,
        valid_hours: 24,
      })),
      ({ idem_key }) => [idem_key],
    ),
    events: sorted(
      changes.map((change) => ({
        aggregate_key: aggregateKey(change.request),
        event_type: eventTypeOf[change.request.action],
        created_at: change.updatedAt,
        payload: payloadOf(change),
        same_id: true,
      })),
      ({ aggregate_key, created_at }) => [aggregate_key, created_at],
    ),
    audit: sorted(
      changes.map(({ request, version, traceId, updatedAt }) => ({
        user_id: request.user,
        stock_keeping_unit: request.sku,
        occurred_at: updatedAt,
        action: request.action,
        source: request.reason,
        source_id: request.purchase,
        request_id: request.key,
        detail: { version, trace_id: traceId },
      })),
      ({ user_id, stock_keeping_unit, occurred_at }) => [user_id, stock_keeping_unit, occurred_at],
    ),
  };
}

function payloadOf({ request, version, updatedAt, traceId }: Owner): Record<string, unknown> {
  return {
    event_type: eventTypeOf[request.action],
    occurred_at: updatedAt,
    user_id: request.user,
    stock_keeping_unit: request.sku,
    source: request.reason,
    source_id: request.purchase,
    version,
    trace_id: traceId,
  };
}

const statusAfter = { GRANT: "ACTIVE", REVOKE: "REVOKED" };
const eventTypeOf = { GRANT: "EntitlementGranted", REVOKE: "EntitlementRevoked" };

function aggregateKey({ user, sku }: ChangeRequest): string {
  return aggregateKeyOf(user, sku);
}

function codeOf({ body }: Answer): unknown {
  return JSON.parse(body).code;
}

function partition<Item>(items: Item[], isFirst: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}

function sorted<Row>(rows: Row[], keyOf: (row: Row) => string[]): Row[] {
  const key = (row: Row) => keyOf(row).join("\u0000");
  return rows.sort((a, b) => key(a) < key(b) ? -1 : 1);
}
