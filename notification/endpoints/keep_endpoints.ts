import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import { Trouble } from "@kenri/shared/process/trouble.ts";
import type { EndpointOptions } from "../orders/settings.ts";
import { abortKeptTooLong, abortOfDeleted, keptTooLong, removeDeleted } from "./end_orders.ts";
import { mayBeParked, parkBatch, unfinishedOf } from "./park.ts";
import { endLostProbe, letProbeThrough } from "./probe.ts";
import { endDraining, unparkBatch } from "./unpark.ts";

// Looks after the endpoints that are not well: parks their orders, probes those that fail, returns
// the orders when an endpoint is ACTIVE again, and ends those of endpoints that won't be. Every step
// is one statement or transaction that checks for itself whether it is still due. So any number of
// replicas may do this, and one that dies leaves nothing behind.

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

// New states in other replicas are found this much later.
const pollIntervalMs = 1_000;
// An endpoint that drains slowly gets more of its orders at least as often.
const drainIntervalMs = 200;

export async function keepEndpoints(
  parts: KeepParts,
  options: KeepOptions,
  stop: AbortSignal,
): Promise<void> {
  const { database, wake, log } = parts;
  const trouble = new Trouble(
    (error) => log.error("Endpoints can't be looked after: {error}", { error }),
    () => log.info("Endpoints are looked after again"),
  );
  let after = firstId;
  while (!stop.aborted) {
    let idleMs = pollIntervalMs;
    try {
      const unwell = await findUnwell(database, options, after);
      after = unwell.length < mostAtOnce ? firstId : (unwell.at(-1) as Unwell).endpoint_id;
      idleMs = after === firstId ? await keepAll(parts, options, unwell, stop) : 0;
      trouble.works("look");
    } catch (error) {
      trouble.fails("look", error);
    }
    if (idleMs > 0) await wake.wait(idleMs, stop);
  }
}
