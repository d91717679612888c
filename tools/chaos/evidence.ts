// Everything that is known at the end of a run: what clients were told, what the tables hold, what
// the channel sent, and what was done to the system.
import { ask } from "../../tests/asking.ts";
import type { AllTables } from "../../tests/invariants/tables.ts";
import type { Told } from "./clients.ts";
import type { Injected } from "./inject.ts";
import { marker, type Poison } from "./messages.ts";
import type { Run } from "./replica.ts";
import type { ServiceLog } from "./service_log.ts";
import type { Stall } from "./stalls.ts";

export interface Evidence {
  told: Told[];
  tables: AllTables;
  givenUp: GivenUp[];
  log: ServiceLog;
  injected: Injected[];
  /** Of the run itself. */
  stalls: Stall[];
  poison: Poison[];
  runs: Run[];
}

/** A message that JetStream will not deliver any more; it was kept with a copy, if there was one. */
export interface GivenUp {
  kind: "MAX_DELIVERIES" | "MSG_TERMINATED";
  poison: string | null;
  has_copy: boolean;
}

export function readGivenUp(notificationUrl: string): Promise<GivenUp[]> {
  return ask<GivenUp>(
    notificationUrl,
    `select kind, message_headers->$1->>0 as poison, message_body is not null as has_copy
     from notification_nats_dlq`,
    [marker],
  );
}
