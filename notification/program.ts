import type { Program } from "@kenri/shared/process/program.ts";
import { settings } from "./setting_names.ts";

export const program: Program = {
  name: "notification",
  settings,
  http: { prefix: "NOTIFICATION_HTTP", port: 8081 },
  servers: [["NOTIFICATION_DATABASE_URL"], ["NATS_URL"], ["ACCESS_JWT_JWKS_URL"]],
  tls: ["NOTIFICATION_DATABASE", "NATS"],
};
