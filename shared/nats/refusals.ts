import type { NatsConnection } from "nats";
import type { Log } from "../process/log.ts";
import { counter } from "../telemetry/metrics.ts";

const refused = counter(
  "kenri_nats_refused_total",
  "operations that NATS did not permit: `publish` or `subscription`",
  ["operation"],
);
for (const operation of ["publish", "subscription"]) refused.inc({ operation }, 0);

const maxReported = 20; // subjects per connection, because each inbox has a new name

// Adds each subject that NATS refuses to `subjects`. NATS does not answer a request that it
// refuses, so without this a missing permission would look like an outage.
export async function recordRefusals(
  connection: NatsConnection,
  subjects: Set<string>,
  log: Log,
): Promise<void> {
  for await (const { permissionContext } of connection.status()) {
    if (!permissionContext) continue;
    const { operation, subject } = permissionContext;
    refused.inc({ operation });
    if (subjects.has(subject) || subjects.size === maxReported) continue;
    subjects.add(subject);
    log.error("NATS does not permit {operation} of {subject}", { operation, subject });
  }
}
