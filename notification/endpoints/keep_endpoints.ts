import { firstId } from "@kenri/shared/http/cursor.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import { Trouble } from "@kenri/shared/process/trouble.ts";
import type { EndpointOptions } from "../orders/settings.ts";
import { abortKeptTooLong, abortOfDeleted, keptTooLong, removeDeleted } from "./end_orders.ts";
import { batchSize, mayBeParked, parkBatch, unfinishedOf } from "./park.ts";
import { endLostProbe, letProbeThrough } from "./probe.ts";
import { endDraining, unparkBatch } from "./unpark.ts";

// Looks after the endpoints that are not well: parks their orders, probes those that fail, returns
// the orders when an endpoint is ACTIVE again, and ends the orders that nobody will get. Every step
// is one statement or transaction that checks by itself whether it is still due. So any number of
// replicas may do this, and one that dies leaves nothing half done.

export interface KeepParts {
  database: Database;
  wakeOrders: Wakeup;
  wake: Wakeup; // triggered when the state of an endpoint changes
  log: Log;
}

export type KeepOptions = Pick<
  EndpointOptions,
  "probeMinMs" | "probeMaxMs" | "disableAfterMs" | "keepMs"
>;

// States that another replica has changed are found after this time.
const pollIntervalMs = 1_000;
// After this time an endpoint that drains has room for more of its orders.
const drainIntervalMs = 200;

export async function keepEndpoints(
  parts: KeepParts,
  options: KeepOptions,
  stop: AbortSignal,
): Promise<void> {
  const trouble = new Trouble(
    (error) => parts.log.error("Endpoints are not looked after: {error}", { error }),
    () => parts.log.info("Endpoints are looked after again"),
  );
  let after = firstId;
  while (!stop.aborted) {
    const kept = await keepSome(parts, options, after, trouble);
    after = kept.after;
    if (kept.idleMs > 0) await parts.wake.wait(kept.idleMs, stop);
  }
}

// One look at the endpoints behind an id, and one step for each that needs any. Returns how long to
// wait before the next look.
export async function keepSome(
  parts: KeepParts,
  options: KeepOptions,
  after: string,
  trouble: Pick<Trouble, "fails" | "works">,
): Promise<{ idleMs: number; after: string }> {
  let idleMs = pollIntervalMs;
  try {
    const unwell = await findUnwell(parts.database, options, after);
    trouble.works("all");
    for (const endpoint of unwell) {
      const { endpoint_id: id, next_probe_ms } = endpoint;
      try {
        idleMs = Math.min(idleMs, next_probe_ms ?? Infinity, await keep(parts, options, endpoint));
        trouble.works(id);
      } catch (error) {
        trouble.fails(id, error);
      }
    }
    const isLast = unwell.length < mostAtOnce;
    return { idleMs, after: isLast ? firstId : unwell.at(-1)?.endpoint_id ?? firstId };
  } catch (error) {
    trouble.fails("all", error);
    return { idleMs, after };
  }
}

interface Unwell extends Record<string, unknown> {
  endpoint_id: string;
  is_deleted: boolean;
  drains: boolean;
  parks: boolean; // orders wait that are to be parked
  keeps_too_long: boolean;
  is_disabled: boolean; // it is FAILING for too long
  lost_probe: boolean;
  probes: boolean; // a probe is due
  next_probe_ms: number | null;
}

const mostAtOnce = 500;

// If all endpoints are well, the index is empty. For one that is not, this reads a few entries.
function findUnwell(
  database: Database,
  { disableAfterMs, keepMs }: KeepOptions,
  after: string,
): Promise<Unwell[]> {
  return query<Unwell>(
    database,
    sql`
    select endpoint_id,
      state = 'DELETED' as is_deleted,
      state = 'ACTIVE' as drains,
      state <> 'ACTIVE' and exists (
        select from outbox_orders row
        where ${unfinishedOf(sql`endpoint.endpoint_id::text`)}
          and ${mayBeParked}) as parks,
      exists (
        select from outbox_orders row
        where row.endpoint_id = endpoint.endpoint_id
          and ${keptTooLong(keepMs)}) as keeps_too_long,
      state = 'FAILING' and failing_since < ${beforeNow(disableAfterMs)} as is_disabled,
      state = 'FAILING' and probe_order_id is not null and not exists (
        select from outbox_orders row
        where row.id = endpoint.probe_order_id
          and row.unfinished) as lost_probe,
      state = 'FAILING' and probe_order_id is null and next_probe_at <= now() and exists (
        select from outbox_orders row
        where row.parked
          and row.endpoint_id = endpoint.endpoint_id) as probes,
      case when state = 'FAILING' and probe_order_id is null and next_probe_at > now()
        then extract(epoch from next_probe_at - now())::float8 * 1000 end as next_probe_ms
    from endpoints endpoint
    where (state <> 'ACTIVE' or is_draining)
      and endpoint_id > ${after}
    order by endpoint_id
    limit ${mostAtOnce}`,
  );
}

function beforeNow(ms: number) {
  return sql`now() - make_interval(secs => ${ms}::float8 / 1000)`;
}

// Returns when this endpoint needs the next look.
async function keep(
  { database, wakeOrders, log }: KeepParts,
  options: KeepOptions,
  endpoint: Unwell,
): Promise<number> {
  const { endpoint_id: id } = endpoint;
  if (endpoint.is_deleted) {
    if (await abortOfDeleted(database, id) > 0) return 0;
    await removeDeleted(database, id);
    return pollIntervalMs;
  }
  if (endpoint.drains) return await drain({ database, wakeOrders, log }, id);
  let idleMs = pollIntervalMs;
  if (endpoint.parks && await parkBatch(database, id) === batchSize) idleMs = 0;
  if (endpoint.keeps_too_long) {
    const aborted = await abortKeptTooLong(database, id, options.keepMs);
    if (aborted > 0) logAborted(log, id, aborted);
    if (aborted === batchSize) idleMs = 0;
  }
  if (endpoint.is_disabled) await disable({ database, log }, id, options.disableAfterMs);
  else if (endpoint.lost_probe) await endLostProbe(database, id, options);
  else if (endpoint.probes && await letProbeThrough(database, id)) wakeOrders.trigger();
  return idleMs;
}

async function drain(
  { database, wakeOrders, log }: Omit<KeepParts, "wake">,
  id: string,
): Promise<number> {
  const { count, isFull } = await unparkBatch(database, id);
  if (count > 0) wakeOrders.trigger();
  if (isFull) return drainIntervalMs;
  if (count > 0) return 0;
  if (!await endDraining(database, id)) return drainIntervalMs;
  log.info("All parked orders of endpoint {endpoint_id} have returned", { endpoint_id: id });
  return pollIntervalMs;
}

async function disable(
  { database, log }: Pick<KeepParts, "database" | "log">,
  id: string,
  disableAfterMs: number,
): Promise<void> {
  const disabled = await query(
    database,
    sql`
    update endpoints
    set state = 'DISABLED',
      state_since = now(),
      next_probe_at = null,
      probe_order_id = null
    where endpoint_id = ${id}
      and state = 'FAILING'
      and failing_since < ${beforeNow(disableAfterMs)}
    returning 1`,
  );
  if (disabled.length === 0) return;
  log.warn("Endpoint {endpoint_id} has failed for too long and is DISABLED", { endpoint_id: id });
}

function logAborted(log: Log, id: string, orders: number): void {
  log.warn("{orders} parked orders of endpoint {endpoint_id} were kept too long and ended", {
    orders,
    endpoint_id: id,
  });
}
