// Checks that a service could start with these settings, for tools that check this first.
import { readConfig as entitlement } from "../entitlement/config.ts";
import { readConfig as notification } from "../notification/config.ts";
import type { Read } from "../shared/process/program.ts";
import type { ServiceName } from "./services.ts";

/** Throws SettingsError with all problems. */
export function checkSettings(service: ServiceName, read: Read): void {
  const readConfig = { entitlement, notification }[service];
  readConfig(read);
}
