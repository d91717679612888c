import { z } from "@hono/zod-openapi";
import type { InboxStreams } from "@kenri/shared/inbox/durables.ts";
import type { NatsLink } from "@kenri/shared/nats/link.ts";
import { countErrors, type DeadLetters } from "@kenri/shared/operators/dead_letters.ts";
import { serviceStatusRoute, statusFields, waitingRows } from "@kenri/shared/operators/status.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Handler } from "hono";
import { consumerInfo } from "../backlog.ts";
import { notifications } from "../deliveries.ts";
import { orders } from "../orders/orders.ts";
import { countEndpoints, endpointStates, findParked } from "./orders/parked.ts";

const waiting = waitingRows(notifications, {
  notification_id: z.uuid(),
  event_id: z.uuid(),
  version: z.int(),
});

const dueOrders = waitingRows(orders, { order_id: z.uuid() }, { order_id: "id" });

const parkedAtMost = 10_000;

const lag = (description: string) => z.int().nullable().openapi({ description });
const matchmakingLag = lag("The same for the events of matchmaking; absent unless it is enabled");

const statusSchema = z.object({
  ...waiting.fields,
  ...statusFields,
  undelivered: lag("Messages in the stream that were not delivered to the consumer yet"),
  unacknowledged: lag("Messages that the consumer was given and that may be redelivered"),
  undelivered_points: lag("The same for the consumer of the events of points"),
  unacknowledged_points: lag("The same for the consumer of the events of points"),
  undelivered_matchmaking: matchmakingLag.optional(),
  unacknowledged_matchmaking: matchmakingLag.optional(),
  orders: z.object({
    ...dueOrders.fields,
    parked: z.int().openapi({ description: `Counted up to ${parkedAtMost}` }),
    oldest_parked_seconds: z.number().nullable(),
    endpoints: z.record(z.enum(endpointStates), z.int()).openapi({
      description: "Number of endpoints by state",
    }),
  }).openapi({ description: "Those that are due wait, the longest first" }),
}).openapi("DeliveryStatus");

export type DeliveryStatus = z.infer<typeof statusSchema>;

export const statusRoute = serviceStatusRoute("notification", "notifications", statusSchema);

export function status(
  database: Database,
  tables: DeadLetters[],
  link: NatsLink,
  inboxes: InboxStreams[],
): Handler {
  return async () => {
    const parts = await Promise.all([
      waiting.read(database),
      readOrders(database).then((orders) => ({ orders })),
      lagOf(link, inboxes),
      countErrors(tables).then((errors) => ({ errors })),
    ]);
    return Response.json(Object.assign({}, ...parts));
  };
}

async function readOrders(database: Database) {
  const [due, parked, endpoints] = await Promise.all([
    dueOrders.read(database),
    findParked(database, parkedAtMost),
    countEndpoints(database),
  ]);
  return { ...due, ...parked, endpoints };
}

// Without NATS the rest of the status is still worth showing.
async function lagOf(link: NatsLink, inboxes: InboxStreams[]) {
  const [info, points, matchmaking] = await Promise.all(
    inboxes.map((inbox) => consumerInfo(link, inbox).catch(() => undefined)),
  );
  return {
    nats: info !== undefined || link.connected,
    undelivered: info?.num_pending ?? null,
    unacknowledged: info?.num_ack_pending ?? null,
    undelivered_points: points?.num_pending ?? null,
    unacknowledged_points: points?.num_ack_pending ?? null,
    ...inboxes.length > 2 && {
      undelivered_matchmaking: matchmaking?.num_pending ?? null,
      unacknowledged_matchmaking: matchmaking?.num_ack_pending ?? null,
    },
  };
}
