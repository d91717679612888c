import { z } from "@hono/zod-openapi";
import type { NatsLink } from "@kenri/shared/nats/link.ts";
import { countErrors, type DeadLetters } from "@kenri/shared/operators/dead_letters.ts";
import { serviceStatusRoute, statusFields, waitingRows } from "@kenri/shared/operators/status.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Handler } from "hono";
import { consumerInfo, type ConsumerName } from "../backlog.ts";
import { notifications } from "../deliveries.ts";

const waiting = waitingRows(notifications, {
  notification_id: z.uuid(),
  event_id: z.uuid(),
  version: z.int(),
});

const statusSchema = z.object({
  ...waiting.fields,
  ...statusFields,
  undelivered: z.int().nullable().openapi({
    description: "Messages in the stream that were not delivered to the consumer yet",
  }),
  unacknowledged: z.int().nullable(),
}).openapi("DeliveryStatus");

export type DeliveryStatus = z.infer<typeof statusSchema>;

export const statusRoute = serviceStatusRoute("notification", "notifications", statusSchema);

export function status(
  database: Database,
  tables: DeadLetters[],
  link: NatsLink,
  consumer: ConsumerName,
): Handler {
  return async () => {
    const parts = await Promise.all([
      waiting.read(database),
      lagOf(link, consumer),
      countErrors(tables).then((errors) => ({ errors })),
    ]);
    return Response.json(Object.assign({}, ...parts));
  };
}

// Without NATS the rest of the status is still worth showing.
async function lagOf(link: NatsLink, consumer: ConsumerName) {
  const info = await consumerInfo(link, consumer).catch(() => undefined);
  return {
    nats: info !== undefined || link.connected,
    undelivered: info?.num_pending ?? null,
    unacknowledged: info?.num_ack_pending ?? null,
  };
}
