import type { Service } from "@kenri/shared/process/program.ts";
import { schemaVersion, settings } from "./derived.ts";
import { looks } from "./operators/looks.ts";

export const program: Service = {
  name: "account",
  port: 8082,
  database: { schemaVersion, ownerSettings: { "retention.audit-days": "400" } },
  usesNats: true,
  settings,
  looks,
};
