import type { Service } from "@kenri/shared/process/program.ts";
import { settings } from "./derived.ts";
import { looks } from "./operators/looks.ts";

export const program: Service = {
  name: "matchmaking",
  port: 8083,
  usesNats: true,
  usesRedis: true,
  settings,
  metricPrefix: "mm_",
  looks,
};
