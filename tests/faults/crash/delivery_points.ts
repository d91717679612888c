// Crashes on the way from the stored notification to the channel.
import { grant } from "../../../tools/load/change_request.ts";
import { withClient } from "../../support/databases.ts";
import type { ServiceProcess, Settings } from "../../../tools/servers/service_process.ts";
import { until } from "../../../tools/servers/wait.ts";
import { statement } from "./fault_point.ts";
import type { CrashPoint } from "./point.ts";
import type { Stage } from "./stage.ts";

const settle = "set status = 'SENT'";

const received = {
  ...{ "stored answers": 1, audit: 1, "outbox PUBLISHED": 1, "in the stream": 1 },
  processed: 1,
};
const claimed = { ...received, "notifications PROCESSING": 1 };
const sent = { ...received, "notifications SENT": 1 };
const sentAfterTakeover = { ...sent, "notification attempts": 1 };
const failed = {
  ...received,
  ...{ "notifications FAILED": 1, "dead letters": 1, "notification attempts": 1 },
};

const failing: Settings = {
  NOTIFICATION_DELIVERY_FAILURE_INJECTION_ENABLED: "true",
  NOTIFICATION_DELIVERY_FAILURE_INJECTION_USER_ID_PREFIX: grant().user,
};
const oneAttempt: Settings = { NOTIFICATION_DELIVERY_MAX_ATTEMPTS: "1" };

const once = "One notification, sent once";

export const deliveryPoints: CrashPoint[] = [
  {
    dies: "after the claim, before the send",
    of: "notification",
    at: statement("after", "claimable as"),
    before: receiveOne,
    leaves: claimed,
    next: "The lease expires; the notification is claimed again, which counts as an attempt",
    ends: sentAfterTakeover,
    sends: 1,
    seen: once,
  },
  {
    dies: "after the send, before the settle",
    of: "notification",
    at: statement("before", settle),
    before: receiveOne,
    leaves: claimed,
    next: "The lease expires; the notification is claimed and sent again",
    ends: sentAfterTakeover,
    sends: 2,
    seen: "One notification, sent twice with the same notification_id; the receiver drops one",
  },
  {
    dies: "after the settle",
    of: "notification",
    at: statement("after", settle),
    before: receiveOne,
    leaves: sent,
    next: "Nothing",
    ends: sent,
    sends: 1,
    seen: once,
  },
  {
    dies: "between the failure of a send and its retry",
    of: "notification",
    at: statement("before", "'RETRIED'"),
    ownSettings: failing,
    before: receiveOne,
    leaves: claimed,
    next: "The lease expires instead, which also counts as an attempt; then it is sent",
    ends: sentAfterTakeover,
    sends: 1,
    seen: once,
  },
  {
    dies: "between the last failure and FAILED",
    of: "notification",
    at: statement("before", "insert into notification_dlq"),
    settings: oneAttempt,
    ownSettings: failing, // another send would succeed
    before: receiveOne,
    leaves: claimed,
    next: "The expired lease was the last attempt: FAILED with a dead letter, without another send",
    ends: failed,
    sends: 0,
    seen: "Nothing; the dead letter contains the notification",
  },
  {
    dies: "within the statement, between FAILED and the dead letter",
    of: "notification",
    settings: oneAttempt,
    ownSettings: failing, // another send would succeed
    before: (stage) => stage.commit(grant()),
    meanwhile: killInFrontOfDeadLetter,
    leaves: claimed,
    next: "Neither was written; the same as in the row above",
    ends: failed,
    sends: 0,
    seen: "Nothing; the dead letter contains the notification",
  },
  {
    dies: "after FAILED and the dead letter",
    of: "notification",
    at: statement("after", "insert into notification_dlq"),
    settings: oneAttempt,
    ownSettings: failing, // another send would succeed
    before: receiveOne,
    leaves: failed,
    next: "Nothing",
    ends: failed,
    sends: 0,
    seen: "Nothing; the dead letter contains the notification",
  },
];

async function receiveOne(stage: Stage): Promise<void> {
  await stage.commit(grant());
  await stage.publish();
  await stage.receive();
}

/** A lock on the table of dead letters stops the statement in its middle. */
async function killInFrontOfDeadLetter(stage: Stage, service: ServiceProcess): Promise<void> {
  await withClient(stage.place.owners.notification, async (owner) => {
    await owner.query("begin");
    await owner.query("lock table notification_dlq in share row exclusive mode");
    await stage.publish();
    await until("it is within the statement", async () => {
      // Otherwise a transaction sees the activity as it was at its first look.
      await owner.query("select pg_stat_clear_snapshot()");
      const waiting = await owner.query(
        `select from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'
           and query like '%insert into notification_dlq%'`,
      );
      return waiting.rowCount === 1;
    });
    await service.kill();
    await owner.query( // otherwise PostgreSQL finishes the statement of the dead client
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = 'notification'`,
    );
    await owner.query("rollback");
  });
}
