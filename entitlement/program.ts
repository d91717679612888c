import type { Service } from "@kenri/shared/process/program.ts";
import { schemaVersion, settings } from "./derived.ts";
import { looks } from "./operators/looks.ts";

export const program: Service = {
  name: "entitlement",
  port: 8080,
  database: { schemaVersion, ownerSettings: { "retention.audit-months": "13" } },
  usesNats: true,
  dev: {
    ENTITLEMENT_NATS_STREAM: "entitlement-events",
    ENTITLEMENT_NATS_SUBJECT: "entitlement.events",
  },
  settings,
  looks,
};
