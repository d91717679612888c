import type { Program } from "@kenri/shared/process/program.ts";
import { settings } from "./setting_names.ts";

export const program: Program = {
  name: "migrate",
  settings,
  servers: ["ENTITLEMENT", "NOTIFICATION"].map((
    service,
  ) => [`${service}_MIGRATION_DATABASE_URL`, `${service}_DATABASE_URL`]),
  tls: ["ENTITLEMENT_DATABASE", "NOTIFICATION_DATABASE"],
  folders: ["entitlement", "notification"], // the SQL files
};
