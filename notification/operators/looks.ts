import type { Looks, QueueLooks } from "@kenri/shared/operators/looks.ts";
import { endpointProblems, orderFigures, orders } from "./orders/commands.ts";
import { endpoints, endpointsShow } from "./orders/endpoint_commands.ts";
import { endpointsReplay } from "./orders/replay_command.ts";
import type { DeliveryStatus } from "./status.ts";

// What operators see of this service.

export const timelineBy = ["event_id", "user_id", "idempotency_key", "order_id"] as const;

export const deliveryQueue: QueueLooks<DeliveryStatus> = {
  title: "Waiting",
  noun: "notification",
  until: "to be sent",
  command: "deliveries",
  layers: ["delivery", "advisory"],
  lateSeconds: 30, // from the change to the send, the objective of docs/slo.md
  waitsForNats: false,
  of: (status) => status,
};

export const orderQueue: QueueLooks<DeliveryStatus> = {
  title: "Orders",
  noun: "due order",
  until: "to be sent",
  command: "orders late",
  layers: ["order"],
  lateSeconds: 60, // the receivers are slower than we are, and are only given a few sends at once
  waitsForNats: false,
  of: (status) => status.orders,
};

export const looks: Looks<DeliveryStatus> = {
  status: {
    queues: [deliveryQueue, orderQueue],
    figures: (status) => ({
      "messages not yet delivered": status.undelivered ?? "unknown",
      "messages not yet acknowledged": status.unacknowledged ?? "unknown",
      "messages of points not yet delivered": status.undelivered_points ?? "unknown",
      "messages of points not yet acknowledged": status.unacknowledged_points ?? "unknown",
      ...matchmakingFigures(status),
      ...orderFigures(status.orders),
    }),
    problems: ({ orders }) => endpointProblems(orders),
  },
  timeline: { title: "notification", absent: "not received", by: timelineBy },
  deadLetters: {
    delivery: "Notifications that could not be sent.",
    advisory: "Messages that JetStream no longer delivers. A copy of each was kept.",
    order: "Orders that could not be sent, or that nobody could send any more.",
  },
  erasesUsers: true,
  logsOperations: true,
  commands: {
    "orders": orders,
    "endpoints": endpoints,
    "endpoints show": endpointsShow,
    "endpoints replay": endpointsReplay,
  },
};

function matchmakingFigures(status: DeliveryStatus): Record<string, number | string> {
  const { undelivered_matchmaking, unacknowledged_matchmaking } = status;
  if (undelivered_matchmaking === undefined) return {};
  return {
    "messages of matchmaking not yet delivered": undelivered_matchmaking ?? "unknown",
    "messages of matchmaking not yet acknowledged": unacknowledged_matchmaking ?? "unknown",
  };
}
