import type { Program } from "@kenri/shared/process/program.ts";
import { looks } from "./operators/looks.ts";
import { settings } from "./setting_names.ts";

export const program: Program = {
  name: "entitlement",
  settings,
  looks,
  http: { prefix: "ENTITLEMENT_HTTP", port: 8080 },
  servers: [["ENTITLEMENT_DATABASE_URL"], ["NATS_URL"], ["ACCESS_JWT_JWKS_URL"]],
  tls: ["ENTITLEMENT_DATABASE", "NATS"],
};
