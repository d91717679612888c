// Crashes on the way from the stored notification to the channel.
import { notifications } from "../../../notification/deliveries.ts";
import { grant } from "../../../tools/load/change_request.ts";
import type { FlowService } from "../../../tools/load/stage.ts";
import { leasedPoints } from "./leased_points.ts";
import { tableLeases } from "./table_leases.ts";
import type { FlowPoint, Stage } from "./stage.ts";

const received = {
  ...{ "stored answers": 1, audit: 1, "outbox PUBLISHED": 1, "in the stream": 1 },
  processed: 1,
};

export const deliveryPoints: FlowPoint[] = leasedPoints<FlowService, Stage>({
  of: "notification",
  leases: tableLeases({ of: "notification", table: notifications }),
  maxAttempts: "NOTIFICATION_DELIVERY_MAX_ATTEMPTS",
  words: {
    ...{ row: "notification", rows: "notifications", attempts: "notification attempts" },
    ...{ work: "send", worked: "sent" },
  },
  add: receiveOne,
  before: received,
  adds: {},
  finished: {
    ends: { ...received, "notifications SENT": 1 },
    sends: 1,
    seen: "One notification, sent once",
  },
  again: {
    next: "The lease expires; the notification is claimed and sent again",
    sends: 2,
    seen: "One notification, sent twice with the same notification_id; the receiver drops one",
  },
  settled: { next: "Nothing" },
  gaveUp: {
    sends: 0,
    seen: "Nothing; the dead letter contains the notification",
    also: { is: "the dead letter", table: "notification_dlq", counts: { "dead letters": 1 } },
  },
  fails: {
    ownSettings: { // another send would succeed
      NOTIFICATION_DELIVERY_FAILURE_INJECTION_ENABLED: "true",
      NOTIFICATION_DELIVERY_FAILURE_INJECTION_USER_ID_PREFIX: grant().user,
    },
  },
});

async function receiveOne(stage: Stage): Promise<void> {
  await stage.commit(grant());
  await stage.publish();
  await stage.receive();
}
