// Everything that is known at the end of a run: what clients were told, what the tables hold, what
// the channel sent, and what was done to the system.
import type { AllTables } from "../../tests/invariants/tables.ts";
import type { Told } from "./clients.ts";
import type { Injected } from "./inject.ts";
import type { Poison } from "./messages.ts";
import type { Run } from "./replica.ts";
import type { ServiceLog } from "./service_log.ts";

export interface Evidence {
  told: Told[];
  tables: AllTables;
  log: ServiceLog;
  injected: Injected[];
  poison: Poison[];
  runs: Run[];
}
