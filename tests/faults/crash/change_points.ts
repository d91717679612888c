// Crashes on the way from the change over HTTP to the stream.
import { outbox } from "../../../entitlement/outbox.ts";
import { grant } from "../../../tools/load/change_request.ts";
import type { FlowService } from "../../../tools/load/stage.ts";
import { untilAll } from "../../support/outbox.ts";
import { deleteStream, refuseMessagesIn } from "../../support/streams.ts";
import { statement } from "./fault_point.ts";
import { leasedPoints } from "./leased_points.ts";
import { tableLeases } from "./table_leases.ts";
import type { Counts } from "./observer.ts";
import type { FlowPoint, Stage } from "./stage.ts";

const settle = "set status = 'PUBLISHED'";
const republishes = "last_error = 'lost by the stream'";

const committed = { "stored answers": 1, audit: 1 };
const sentOnce = {
  ...{ ...committed, "outbox PUBLISHED": 1, "in the stream": 1 },
  ...{ processed: 1, "notifications SENT": 1 },
};
const afterTakeover = { ...sentOnce, "outbox attempts": 1 };
const once = "The change was answered before; one notification, sent once";
const publishedAgain =
  "It is published again with the same Nats-Msg-Id; the stream drops and acknowledges it";

export const changePoints: FlowPoint[] = [
  {
    dies: "before the commit",
    of: "entitlement",
    at: statement("before", "commit"),
    meanwhile: (stage, { url }) => stage.askInVain(url),
    leaves: {},
    next: "PostgreSQL has rolled the transaction back",
    ends: sentOnce,
    sends: 1,
    replays: false,
    seen: "No answer; the request is carried out when it is repeated with its key",
  },
  {
    dies: "after the commit, before the answer, in a replica without a relay",
    of: "entitlement",
    at: statement("after", "commit"),
    ownSettings: { ENTITLEMENT_OUTBOX_ENABLED: "false" },
    meanwhile: (stage, { url }) => stage.askInVain(url),
    leaves: { ...committed, "outbox PENDING": 1 },
    next: "A relay finds the row, which is due",
    ends: sentOnce,
    sends: 1,
    replays: true,
    seen: "No answer; the repeated request gets the stored one, with Idempotency-Replayed",
  },
  {
    dies: "after the commit, before the row is handed over to the relay and the answer sent",
    of: "entitlement",
    at: statement("after", "commit", 2),
    // Rows are handed over only to a relay that keeps up. The change before shows that it does.
    meanwhile: async (stage, { url }) => {
      await stage.ask(url, grant({ key: "before", user: "before" }));
      await untilAll(stage.place.owners.entitlement, "PUBLISHED");
      await stage.askInVain(url);
    },
    leaves: {
      ...{ "stored answers": 2, audit: 2, "in the stream": 1 },
      ...{ "outbox PUBLISHED": 1, "outbox IN_FLIGHT": 1 },
    },
    next: "The row was committed with a lease; the lease expires, and a worker claims the row",
    ends: { ...allSent(2), "outbox attempts": 1 },
    sends: 2,
    replays: true,
    seen: "No answer; the repeated request gets the stored one, with Idempotency-Replayed",
  },
  ...leasedPoints<FlowService, Stage>({
    of: "entitlement",
    leases: tableLeases({ of: "entitlement", table: outbox }),
    maxAttempts: "ENTITLEMENT_OUTBOX_MAX_ATTEMPTS",
    words: {
      ...{ row: "row", rows: "outbox", attempts: "outbox attempts" },
      ...{ work: "publish", worked: "published" },
    },
    add: (stage) => stage.commit(grant()),
    before: committed,
    adds: { "in the stream": 1 },
    finished: { ends: sentOnce, sends: 1, seen: once },
    again: { next: publishedAgain },
    settled: { next: "Nothing" },
    gaveUp: {
      sends: 0,
      seen:
        "The change was answered and is valid; its notification is missing, and the log says so",
    },
    fails: { begin: refuseMessages },
  }),
  {
    dies: "after publishing, before the PubAck",
    of: "entitlement",
    at: { when: "after", what: "publish", part: ".events" },
    before: (stage) => stage.commit(grant()),
    leaves: { ...committed, "outbox IN_FLIGHT": 1, "in the stream": 1 },
    next: publishedAgain,
    ends: afterTakeover,
    sends: 1,
    seen: once,
  },
  {
    dies: "the same, and the stream's duplicate window is over",
    of: "entitlement",
    at: { when: "after", what: "publish", part: ".events" },
    settings: {
      ENTITLEMENT_NATS_DUPLICATE_WINDOW: "100ms",
      NOTIFICATION_NATS_DUPLICATE_WINDOW: "100ms",
    },
    before: (stage) => stage.commit(grant()),
    leaves: { ...committed, "outbox IN_FLIGHT": 1, "in the stream": 1 },
    next: "It is published again and stored twice; processed_events removes the duplicate",
    ends: { ...afterTakeover, "in the stream": 2 },
    sends: 1,
    seen: once,
  },
  {
    dies: "when a batch of PubAcks is half settled",
    of: "entitlement",
    at: statement("before", settle, 2),
    // Both have one aggregate key, so the second is published only after the PubAck of the first.
    before: async (stage) => {
      await stage.commit(grant());
      await stage.commit({ ...grant({ key: "key-2" }), action: "REVOKE" });
    },
    leaves: {
      ...{ "stored answers": 2, audit: 2, "in the stream": 2 },
      ...{ "outbox PUBLISHED": 1, "outbox IN_FLIGHT": 1 },
    },
    next: "Only the row that was not settled is published again",
    ends: { ...allSent(2), "outbox attempts": 1 },
    sends: 2,
    seen: "Both changes were answered before; one notification for each, in order, sent once",
  },
  {
    dies: "in the loss check, after it has found the loss",
    of: "entitlement",
    at: statement("after", "insert into stream_generations"),
    before: (stage) => loseStream(stage, 2),
    leaves: { "stored answers": 2, audit: 2, "outbox PUBLISHED": 2 },
    next: "The recorded generation says where the old stream ended; the later rows are republished",
    ends: allSent(2),
    sends: 2,
    seen: "Every change was answered before; one notification for each, sent once",
  },
  {
    dies: "in the loss check, when half of the rows are republished",
    of: "entitlement",
    at: statement("before", republishes, 2),
    before: (stage) => loseStream(stage, 1_100),
    leaves: {
      ...{ "stored answers": 1_100, audit: 1_100 },
      ...{ "outbox PENDING": 1_000, "outbox PUBLISHED": 100 },
    },
    next: "The other rows are republished before anything else is published",
    ends: allSent(1_100),
    sends: 1_100,
    seen: "Every change was answered before; one notification for each, sent once",
  },
];

function allSent(changes: number): Counts {
  return {
    ...{ "stored answers": changes, audit: changes, "in the stream": changes },
    ...{ "outbox PUBLISHED": changes, processed: changes, "notifications SENT": changes },
  };
}

function refuseMessages({ place }: Stage): Promise<void> {
  return refuseMessagesIn(place.natsUrl, place.stream);
}

async function loseStream(stage: Stage, changes: number): Promise<void> {
  const requests = Array.from(
    { length: changes },
    (_, i) => grant({ key: `key-${i}`, user: `user-${i}` }),
  );
  while (requests.length > 0) await stage.commit(...requests.splice(0, 128));
  await stage.publish();
  await deleteStream(stage.place.natsUrl, stage.place.stream);
}
