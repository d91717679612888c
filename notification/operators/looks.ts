import type { Looks, QueueLooks } from "@kenri/shared/operators/looks.ts";
import type { DeliveryStatus } from "./status.ts";

// What operators see of this service.

export const timelineBy = ["event_id", "user_id"] as const;

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

export const looks: Looks<DeliveryStatus> = {
  status: {
    queues: [deliveryQueue],
    figures: ({ undelivered, unacknowledged, undelivered_points, unacknowledged_points }) => ({
      "messages not yet delivered": undelivered ?? "unknown",
      "messages not yet acknowledged": unacknowledged ?? "unknown",
      "messages of points not yet delivered": undelivered_points ?? "unknown",
      "messages of points not yet acknowledged": unacknowledged_points ?? "unknown",
    }),
  },
  timeline: { title: "notification", absent: "not received", by: timelineBy },
  deadLetters: {
    delivery: "Notifications that could not be sent.",
    advisory: "Messages that JetStream no longer delivers. A copy of each was kept.",
  },
  erasesUsers: true,
  logsOperations: true,
};
