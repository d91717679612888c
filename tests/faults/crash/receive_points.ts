// Crashes on the way from the stream to the stored notification.
import type { BothPlaces } from "../../../tools/load/stage.ts";
import { type ChangeRequest, grant } from "../../../tools/load/change_request.ts";
import { ask } from "../../support/entitlement.ts";
import { messageOf, publish } from "../../support/events.ts";
import { until } from "../../../tools/servers/wait.ts";
import { type FaultPoint, statement } from "./fault_point.ts";
import type { Counts } from "./observer.ts";
import type { FlowPoint, Stage } from "./stage.ts";

const claim = "claimable as";
const ack: Omit<FaultPoint, "when"> = { what: "answer", part: "+ACK", withholds: claim };
const term: Omit<FaultPoint, "when"> = { what: "answer", part: "+TERM", withholds: claim };

const published = { "stored answers": 1, audit: 1, "outbox PUBLISHED": 1, "in the stream": 1 };
const received = { ...published, processed: 1, "notifications PENDING": 1 };
const sent = { ...published, processed: 1, "notifications SENT": 1 };
const keptCopy = { "in the stream": 2, "kept copies": 1 };

const once = "One notification, sent once";

export const receivePoints: FlowPoint[] = [
  {
    dies: "after the pull, before the insert",
    of: "notification",
    at: statement("before", "insert into processed_events"),
    before: publishOne,
    leaves: published,
    unacknowledged: 1,
    next: "The ack wait ends, and the message is delivered again",
    ends: sent,
    sends: 1,
    seen: once,
  },
  {
    dies: "after the insert's commit, before the ack",
    of: "notification",
    at: { when: "before", ...ack },
    before: publishOne,
    leaves: received,
    unacknowledged: 1,
    next: "The message is delivered again; processed_events contains it, and it is acknowledged",
    ends: sent,
    sends: 1,
    seen: once,
  },
  {
    dies: "after the insert's commit, before it is handed over to delivery and acknowledged",
    of: "notification",
    at: statement("after", "insert into processed_events", 2),
    // Rows are handed over only to a delivery that keeps up. The one before shows that it does.
    meanwhile: async (stage) => {
      await stage.commit(grant({ key: "before", user: "before" }));
      await stage.publish();
      await untilSent(stage.place);
      await publishOne(stage);
    },
    leaves: {
      ...{ "stored answers": 2, audit: 2, "outbox PUBLISHED": 2, "in the stream": 2 },
      ...{ processed: 2, "notifications SENT": 1, "notifications PROCESSING": 1 },
    },
    unacknowledged: 1,
    next:
      "It was stored with a lease; the lease expires, and it is claimed. The message is a duplicate",
    ends: { ...twice(sent), "notification attempts": 1 },
    sends: 2,
    seen: once,
  },
  {
    dies: "after the insert's commit, before the end of a successor's wait",
    of: "notification",
    at: { ...statement("before", "set awaits_predecessor = false"), withholds: claim },
    settings: { NOTIFICATION_DELIVERY_PREDECESSOR_WAIT: "1h" },
    before: async (stage) => {
      await stage.commit(grant());
      await stage.commit(revoke());
      await stage.publish();
      await stage.receive((sequence) => sequence === 2); // which waits for version 1
    },
    leaves: twice(received),
    unacknowledged: 2,
    next: "Version 1 is delivered again, and the duplicate ends the wait of version 2",
    ends: twice(sent),
    sends: 2,
    seen: "Both notifications, in order, each sent once",
  },
  {
    dies: "after the ack",
    of: "notification",
    at: { when: "after", ...ack },
    before: publishOne,
    leaves: received,
    unacknowledged: 0,
    next: "The notification is stored and due; delivery claims it",
    ends: sent,
    sends: 1,
    seen: once,
  },
  {
    dies: "before the TERM of an unreadable message",
    of: "notification",
    at: { when: "before", ...term },
    before: publishOneAndUnreadable,
    leaves: { ...received, "in the stream": 2 },
    unacknowledged: 1,
    next: "The message is delivered again, and terminated",
    ends: { ...sent, ...keptCopy },
    sends: 1,
    seen: `${once}; a copy of the unreadable message is kept`,
  },
  {
    dies: "after the TERM, before its advisory is captured",
    of: "notification",
    at: { when: "after", ...term },
    before: publishOneAndUnreadable,
    leaves: { ...received, "in the stream": 2 },
    unacknowledged: 0,
    next: "A stream keeps the advisory; it is captured, with a copy of the message",
    ends: { ...sent, ...keptCopy },
    sends: 1,
    seen: `${once}; a copy of the unreadable message is kept`,
  },
  {
    dies: "when the advisory is captured, before it is stored",
    of: "notification",
    at: { ...statement("before", "insert into notification_nats_dlq"), withholds: claim },
    before: publishOneAndUnreadable,
    leaves: { ...received, "in the stream": 2 },
    unacknowledged: 0,
    next: "The advisory is delivered again after the ack wait, and captured",
    ends: { ...sent, ...keptCopy },
    sends: 1,
    seen: `${once}; a copy of the unreadable message is kept`,
  },
  {
    dies: "when the advisory is stored, before its ack",
    of: "notification",
    at: { ...statement("after", "insert into notification_nats_dlq"), withholds: claim },
    before: publishOneAndUnreadable,
    leaves: { ...received, ...keptCopy },
    unacknowledged: 0,
    next: "The advisory is delivered again, found by its id, and acknowledged",
    ends: { ...sent, ...keptCopy },
    sends: 1,
    seen: `${once}; one copy of the unreadable message is kept`,
  },
];

function revoke(): ChangeRequest {
  return { ...grant({ key: "key-2" }), action: "REVOKE" };
}

function twice(counts: Counts): Counts {
  return Object.fromEntries(Object.entries(counts).map(([what, count]) => [what, 2 * count]));
}

async function publishOne(stage: Stage): Promise<void> {
  await stage.commit(grant());
  await stage.publish();
}

function untilSent({ owners }: BothPlaces): Promise<void> {
  return until("one is sent", async () => {
    const sent = await ask(
      owners.notification,
      "select from notifications where status = 'SENT'",
    );
    return sent.length === 1;
  });
}

async function publishOneAndUnreadable(stage: Stage): Promise<void> {
  await publishOne(stage);
  const { natsUrl, subject } = stage.place;
  await publish(natsUrl, subject, [messageOf({ eventId: "no UUID" })]);
}
