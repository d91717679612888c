import {
  type Database,
  query,
  type Transaction,
  transaction,
} from "@kenri/shared/postgres/postgres.ts";
import { listOf, sql } from "@kenri/shared/postgres/sql.ts";
import { type Reason, reasons } from "../orders/reasons.ts";
import type { EndpointOptions } from "../orders/settings.ts";

// The states of an endpoint and every move between them:
//   (new) → ACTIVE             created
//   ACTIVE → FAILING           so many failures in a row that it seems to be down
//   FAILING → ACTIVE           it answered its probe, or a send that was still under way
//   ACTIVE, FAILING → GONE     it answered 410
//   FAILING → DISABLED         it has failed for too long (keep_endpoints.ts)
//   any → PAUSED               by its caller
//   any → ACTIVE               resumed by its caller
//   any → DELETED → (removed)  by its caller; removed when its orders have ended (keep_endpoints.ts)
// With each move back to ACTIVE it is draining, until none of its orders is parked. So at every
// commit, an endpoint with parked orders is not ACTIVE or is draining.

// What came of one send to an endpoint.
export interface SendOutcome {
  endpointId: string;
  orderId: string;
  reason: Reason | undefined; // none for success
  failuresBefore: number; // of the endpoint, at the claim
}

type ProbeTimes = Pick<EndpointOptions, "failuresToPark" | "probeMinMs" | "probeMaxMs">;

// The endpoints that have failures, as far as this process knows. An order that was claimed before
// the first failure does not know of it, but its success ends the row of failures.
const withFailures = new WeakMap<Database, Set<string>>();

// Counts failures in a row and changes the states of endpoints. Nothing is written about a success
// of an endpoint without failures. Returns whether a state has changed.
export async function noteOutcomes(
  database: Database,
  options: ProbeTimes,
  outcomes: SendOutcome[],
): Promise<{ changed: boolean }> {
  const known = withFailures.get(database) ?? new Set();
  withFailures.set(database, known);
  const ofEndpoint = Map.groupBy(outcomes, ({ endpointId }) => endpointId);
  for (const [id, own] of ofEndpoint) {
    if (!known.has(id) && !own.some(isNews)) ofEndpoint.delete(id);
  }
  if (ofEndpoint.size === 0) return { changed: false };
  const moves = await transaction(database, async (tx) => {
    const found = await lockEndpoints(tx, [...ofEndpoint.keys()]);
    const moves = found.map((before) =>
      moveAfter(before, ofEndpoint.get(before.endpoint_id) ?? [], options)
    );
    await writeMoves(tx, moves);
    return moves;
  });
  for (const { endpointId, failures } of moves) {
    if (failures > 0) known.add(endpointId);
    else known.delete(endpointId);
  }
  return { changed: moves.some(({ changed }) => changed) };
}

function isNews({ reason, failuresBefore }: SendOutcome): boolean {
  return reason !== undefined || failuresBefore > 0;
}

// What a send says about the endpoint. Every answer but 5xx and 410 says that it is up, even one
// that refuses the order: it would refuse the probe again, and no other order would ever be sent.
export function verdictOn(reason: Reason | undefined): "up" | "down" | "gone" | "unknown" {
  if (reason === undefined || refusals.has(reason)) return "up";
  if (reason === "GONE") return "gone";
  return reasons[reason].unreachable ? "down" : "unknown";
}

const refusals: ReadonlySet<Reason> = new Set(["REFUSED", "REDIRECTED", "THROTTLED"]);

export interface Health extends Record<string, unknown> {
  endpoint_id: string;
  state: "ACTIVE" | "PAUSED" | "FAILING" | "DISABLED" | "GONE" | "DELETED";
  failures: number;
  probes: number; // that have failed since it is FAILING
  probe_order_id: string | null;
}

export interface Move {
  endpointId: string;
  state: Health["state"];
  failures: number;
  probes: number;
  changed: boolean;
  probeInMs: number | undefined; // a new time of the next probe
  endsProbe: boolean;
  hadSuccess: boolean;
  lastReason: Reason | undefined;
}

// Only an ACTIVE or FAILING endpoint is moved by what comes of sends.
export function moveAfter(before: Health, outcomes: SendOutcome[], options: ProbeTimes): Move {
  const move: Move = {
    endpointId: before.endpoint_id,
    state: before.state,
    failures: before.failures,
    probes: before.probes,
    changed: false,
    probeInMs: undefined,
    endsProbe: false,
    hadSuccess: outcomes.some(({ reason }) => reason === undefined),
    lastReason: outcomes.findLast(({ reason }) => reason !== undefined)?.reason,
  };
  for (const { reason, orderId } of outcomes) {
    if (move.state !== "ACTIVE" && move.state !== "FAILING") break;
    const verdict = verdictOn(reason);
    if (verdict === "gone") move.state = "GONE";
    else if (verdict === "up") [move.state, move.failures, move.probes] = ["ACTIVE", 0, 0];
    else if (verdict === "down") move.failures++;
    if (move.state === "ACTIVE" && move.failures >= options.failuresToPark) {
      move.state = "FAILING";
      move.probeInMs = probeDelayMs(0, options);
    } else if (move.state === "FAILING" && orderId === before.probe_order_id) {
      move.endsProbe = true;
      move.probeInMs = probeDelayMs(++move.probes, options);
    }
  }
  move.changed = move.state !== before.state;
  return move;
}

// 5 s, 10 s, 20 s and so on, with the default settings.
export function probeDelayMs(
  failedProbes: number,
  { probeMinMs, probeMaxMs }: Pick<ProbeTimes, "probeMinMs" | "probeMaxMs">,
): number {
  return Math.min(probeMaxMs, probeMinMs * 2 ** failedProbes);
}

// In the order of their ids, so that two workers can't deadlock.
function lockEndpoints(tx: Transaction, ids: string[]): Promise<Health[]> {
  return query<Health>(
    tx,
    sql`
    select endpoint_id, state, failures, probes, probe_order_id
    from endpoints
    where endpoint_id = any(${listOf(ids)}::uuid[])
    order by endpoint_id
    for no key update`,
  );
}

async function writeMoves(tx: Transaction, moves: Move[]): Promise<void> {
  const values = <Value extends string | number>(of: (move: Move) => Value | null) =>
    listOf(moves.map(of));
  await query(
    tx,
    sql`
    update endpoints endpoint
    set state = move.state,
      state_since = case when changed then now() else state_since end,
      is_draining = is_draining or (changed and move.state = 'ACTIVE'),
      failures = move.failures,
      failing_since = case
        when move.state = 'ACTIVE' then null
        when changed and move.state = 'FAILING' then now()
        else failing_since end,
      probes = move.probes,
      next_probe_at = case
        when move.state <> 'FAILING' then null
        else coalesce(now() + make_interval(secs => probe_in_ms / 1000), next_probe_at) end,
      probe_order_id = case
        when move.state = 'FAILING' and not changed and not ends_probe then probe_order_id end,
      last_success_at = case when had_success then now() else last_success_at end,
      last_failure_at = case when reason is null then last_failure_at else now() end,
      last_reason = coalesce(reason, last_reason)
    from unnest(
      ${values(({ endpointId }) => endpointId)}::uuid[],
      ${values(({ state }) => state)}::text[],
      ${values(({ changed }) => `${changed}`)}::boolean[],
      ${values(({ failures }) => failures)}::integer[],
      ${values(({ probes }) => probes)}::integer[],
      ${values(({ probeInMs }) => probeInMs ?? null)}::float8[],
      ${values(({ endsProbe }) => `${endsProbe}`)}::boolean[],
      ${values(({ hadSuccess }) => `${hadSuccess}`)}::boolean[],
      ${values(({ lastReason }) => lastReason ?? null)}::text[]
    ) as move (endpoint_id, state, changed, failures, probes, probe_in_ms, ends_probe, had_success,
      reason)
    where endpoint.endpoint_id = move.endpoint_id`,
  );
}
