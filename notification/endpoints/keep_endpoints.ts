import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { aborted, type Wakeup } from "@kenri/shared/process/signals.ts";
import type { EndpointOptions } from "../orders/settings.ts";

export interface KeepParts {
  database: Database;
  wakeOrders: Wakeup;
  wake: Wakeup;
  log: Log;
}

export async function keepEndpoints(
  _parts: KeepParts,
  _options: EndpointOptions,
  stop: AbortSignal,
): Promise<void> {
  await aborted(stop);
}
