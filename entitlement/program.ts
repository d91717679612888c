import type { Service } from "@kenri/shared/process/program.ts";
import { schemaVersion, settings } from "./derived.ts";
import { looks } from "./operators/looks.ts";

export const program: Service = {
  name: "entitlement",
  port: 8080,
  database: { schemaVersion, ownerSettings: { "retention.audit-months": "13" } },
  usesNats: true,
  dev: {
    settings: {
      ENTITLEMENT_NATS_STREAM: "entitlement-events",
      ENTITLEMENT_NATS_SUBJECT: "entitlement.events",
    },
    tryOut: (url) =>
      `curl ${url}/v1/entitlements/grants \\
      -H 'Idempotency-Key: purchase-1' -H 'Content-Type: application/json' \\
      -d '{"user_id":"ann","stock_keeping_unit":"book","reason":"purchase","purchase_id":"purchase-1"}'

    soon=$(date -u -d '+5 seconds' +%FT%TZ 2>/dev/null || date -u -v+5S +%FT%TZ)
    curl ${url}/v1/points/reservations \\
      -H "Idempotency-Key: welcome-$soon" -H 'Content-Type: application/json' \\
      -d '{"user_id":"ann","point_amount":100,"execute_at":"'$soon'"}'
    curl ${url}/v1/users/ann/points`,
  },
  settings,
  looks,
};
