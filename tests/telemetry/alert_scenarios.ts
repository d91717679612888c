// Changes of the figures, and the alerts that each has to raise.
import {
  always,
  claims,
  commands,
  dead,
  deliveries,
  entitlement,
  figures,
  from,
  list,
  notification,
  perSecond,
  published,
  reads,
  received,
  sent,
  type Series,
} from "./alert_figures.ts";

interface Scenario {
  fires: string[];
  but: Series; // how it differs from a healthy system; "" removes a series
  after?: string;
}

const without = (series: Series): Series =>
  Object.fromEntries(Object.keys(series).map((name) => [name, ""]));

export const scenarios: Record<string, Scenario> = {
  "all is well": { fires: [], but: {} },
  "all is well, as Prometheus 3 writes the buckets": {
    fires: [],
    but: {
      ...without({ ...reads("1", 10, 10), ...published("5", 10, 10), ...sent("30", 10, 10) }),
      ...reads("1.0", 10, 10),
      ...published("5.0", 10, 10),
      ...sent("30.0", 10, 10),
    },
  },
  "nobody asks for anything": {
    fires: [],
    but: {
      ...reads("1", 0, 0),
      ...published("5", 0, 0),
      ...sent("30", 0, 0),
      [commands("applied")]: always(0),
      [received("handled")]: always(0),
      [deliveries("sent")]: always(0),
      [`notification_stream_pending_current{${notification}}`]: always(0),
    },
  },

  "no replica of entitlement": { fires: ["EntitlementDown"], but: { [`up{${entitlement}}`]: "" } },
  "no replica of notification": {
    fires: ["NotificationDown"],
    but: { [`up{${notification}}`]: from(40, 1, 0), 'up{job="other"}': always(1) },
  },
  "one replica of two": {
    fires: ["ReplicaDown"],
    but: { 'up{job="entitlement",instance="e2"}': always(0) },
  },
  "a replica that starts anew every five minutes": {
    fires: ["ReplicaRestarts"],
    but: {
      [`process_start_time_seconds{${entitlement}}`]: Array.from(
        { length: 40 },
        (_, start) => `${start}+0x4`,
      ).join(" "),
    },
  },
  "a rolling restart": {
    fires: [],
    but: { [`process_start_time_seconds{${entitlement}}`]: from(95, 1, 5_700) },
  },
  "no turn for a process": {
    fires: ["ProcessStandsStill"],
    but: { [`kenri_event_loop_lag_seconds{${notification}}`]: always(0.8) },
  },
  "a lost lease": {
    fires: ["ProcessStandsStill"],
    but: { [`kenri_worker_lease_lost_total{${notification}}`]: from(40, 0, 3) },
  },
  "memory near its limit": {
    fires: ["MemoryGrows"],
    but: { [`process_resident_memory_bytes{${entitlement}}`]: always(490e6) },
  },

  "the entitlement database is unavailable": {
    fires: ["EntitlementDatabaseAway"],
    but: { [`kenri_database_up{${entitlement}}`]: from(48, 1, 0) },
  },
  "the notification database is unavailable": {
    fires: ["NotificationDatabaseAway"],
    but: { [`kenri_database_up{${notification}}`]: from(40, 1, 0) },
  },
  "slow claims": { fires: ["DatabaseSlow"], but: { ...claims("2.5", 10), ...claims("0.01", 2) } },
  "callers wait for a connection": {
    fires: ["DatabaseSlow"],
    but: { [`kenri_database_pool_waiting{${notification}}`]: always(4) },
  },

  "one change of fifty fails": {
    fires: ["ChangesFail", "ChangesFailSlowly"],
    but: { [commands("unavailable")]: perSecond(0.2) },
  },
  "one change of a thousand fails": {
    fires: ["ChangesFailSlowly"],
    but: { [commands("error")]: perSecond(0.01) },
  },
  "one change of ten thousand fails": {
    fires: [],
    but: { [commands("error")]: perSecond(0.001) },
  },
  "refusals are no failures": {
    fires: [],
    but: { [commands("invalid")]: perSecond(5), [commands("state_conflict")]: perSecond(5) },
  },
  "two changes fail in a quiet night": {
    fires: [],
    but: { [commands("applied")]: perSecond(0.01), [commands("error")]: from(97, 0, 2) },
  },
  "changes wait for their commit": {
    fires: ["ChangesWait"],
    but: { [`kenri_batch_waiting_current{${entitlement},batch="changes"}`]: always(900) },
  },
  "lists are slow": { fires: ["ReadsLate", "ReadsLateSlowly"], but: reads("1", 10, 2) },
  "lists fail quickly": {
    fires: ["ReadsLate", "ReadsLateSlowly"],
    but: figures("kenri_http_request_duration_seconds", `${list},status="503"`, "1", 50, 50),
  },
  "one list of ten is slow": { fires: ["ReadsLateSlowly"], but: reads("1", 10, 9) },

  "NATS is unavailable": {
    fires: ["NatsAway"],
    but: {
      [`kenri_nats_connected{${entitlement}}`]: from(45, 1, 0),
      [`entitlement_outbox_backlog_age_seconds{${entitlement}}`]: always(700),
    },
  },
  "NATS was unavailable for a minute": {
    fires: [],
    but: { [`kenri_nats_connected{${entitlement}}`]: from(99, 1, 0) },
  },
  "the connection breaks each minute": {
    fires: ["NatsUnsteady"],
    but: { [`kenri_nats_connections_total{${notification}}`]: perSecond(1 / 60) },
  },
  "NATS does not permit a subject": {
    fires: ["NatsRefuses"],
    but: { [`kenri_nats_refused_total{${notification},operation="publish"}`]: from(45, 0, 3) },
  },
  "the consumer of notification is missing": {
    fires: ["StreamMissing"],
    but: { [`kenri_nats_unprovisioned_current{${notification}}`]: from(45, 0, 1) },
  },
  "NATS is unavailable while a service has not yet seen its stream": {
    fires: ["NatsAway"],
    but: {
      [`kenri_nats_unprovisioned_current{${entitlement}}`]: from(45, 0, 1),
      [`kenri_nats_connected{${entitlement}}`]: from(45, 1, 0),
    },
  },
  "the outbox stands still": {
    fires: ["OutboxStandsStill"],
    but: {
      [`entitlement_outbox_backlog_age_seconds{${entitlement}}`]: from(47, 0, 90),
      ...published("5", 0, 0),
    },
  },
  "an event waits for its retry while others are published": {
    fires: [],
    but: { [`entitlement_outbox_backlog_age_seconds{${entitlement}}`]: always(90) },
  },
  "an event waits for ever while others are published": {
    fires: ["OutboxStandsStill"],
    but: { [`entitlement_outbox_backlog_age_seconds{${entitlement}}`]: always(700) },
  },
  "events are published late": {
    fires: ["PublishLate", "PublishLateSlowly"],
    but: published("5", 10, 1),
  },
  "one event of ten is published late": {
    fires: ["PublishLateSlowly"],
    but: published("5", 10, 9),
  },
  "a dead event": {
    fires: ["DeadEvents"],
    but: { [`entitlement_outbox_failed_current{${entitlement}}`]: always(1) },
  },

  "nothing is received": {
    fires: ["StreamWaits"],
    but: { [received("handled")]: always(7) },
  },
  "less is received than published": {
    fires: ["StreamWaits"],
    but: { [`notification_stream_pending_current{${notification}}`]: perSecond(10) },
  },
  "a message can't be stored": {
    fires: ["ReceivesFail"],
    but: { [received("failed")]: perSecond(0.1) },
  },
  "a dead message": { fires: ["DeadMessages"], but: { [dead("advisory")]: always(1) } },
  "the channel is unavailable": {
    fires: ["SendsFail"],
    but: { [deliveries("sent")]: always(9), [deliveries("retried")]: perSecond(1) },
  },
  "one notification is retried in a quiet night": {
    fires: [],
    but: { [deliveries("sent")]: always(9), [deliveries("retried")]: perSecond(1 / 60) },
  },
  "one notification of fifty fails for good": {
    fires: ["NotificationsFail", "NotificationsFailSlowly"],
    but: { [deliveries("failed")]: perSecond(0.2) },
  },
  "one notification of 500 fails for good": {
    fires: ["NotificationsFailSlowly"],
    but: { [deliveries("failed")]: perSecond(0.02) },
  },
  "a dead notification": { fires: ["DeadNotifications"], but: { [dead("delivery")]: always(1) } },
  "a notification waits": {
    fires: ["DeliveryStandsStill"],
    but: { [`notification_backlog_age_seconds{${notification}}`]: always(700) },
  },
  "notifications are late": {
    fires: ["NotificationsLate", "NotificationsLateSlowly"],
    but: sent("30", 10, 1),
  },
  "one notification of ten is late": { fires: ["NotificationsLateSlowly"], but: sent("30", 10, 9) },
  "a notification without an end": {
    fires: ["NotificationsOverdue"],
    but: { [`notification_overdue_current{${notification}}`]: always(1) },
  },

  "an event is missing": {
    fires: ["EventsUnreceived"],
    but: { [`entitlement_unreceived_current{${entitlement},state="MISSING"}`]: always(1) },
  },
  "not checked for hours": {
    fires: ["NotReconciled"],
    but: { [`entitlement_proven_until_timestamp_seconds{${entitlement}}`]: always(1) },
    after: "240m",
  },
};
