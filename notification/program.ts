import type { Program } from "@kenri/shared/process/program.ts";
import { looks } from "./operators/looks.ts";
import { settings } from "./setting_names.ts";

export const program: Program = {
  name: "notification",
  settings,
  looks,
  http: { prefix: "NOTIFICATION_HTTP", port: 8081 },
  servers: [["NOTIFICATION_DATABASE_URL"], ["NATS_URL"], ["ACCESS_JWT_JWKS_URL"]],
  tls: ["NOTIFICATION_DATABASE", "NATS"],
};
