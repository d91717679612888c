import type { Program } from "../../shared/process/program.ts";
import { settings } from "./setting_names.ts";

export const program: Program = {
  name: "provision",
  settings,
  servers: [["NATS_PROVISION_URL", "NATS_URL"]],
  tls: ["NATS"],
};
