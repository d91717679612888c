import type { Service } from "@kenri/shared/process/program.ts";
import { settings } from "./derived.ts";
import { looks } from "./operators/looks.ts";

export const program: Service = {
  name: "matchmaking",
  port: 8083,
  usesNats: true,
  usesRedis: true,
  dev: {
    settings: {},
    tryOut: (url) =>
      `curl ${url}/v1/matchmaking/queues/casual/tickets \\
      -H 'X-User-Id: ann' -H 'Content-Type: application/json' \\
      -d '{"party_size":1,"idempotency_key":"evening-1"}'`,
  },
  settings,
  metricPrefix: "mm_",
  looks,
};
