import type { Service } from "@kenri/shared/process/program.ts";
import { schemaVersion, settings } from "./derived.ts";

export const program: Service = {
  name: "reminders",
  port: 8090,
  database: { schemaVersion },
  usesNats: true,
  settings,
};
