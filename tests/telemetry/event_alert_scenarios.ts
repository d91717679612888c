// Changes of the figures of events, from the outbox to the send, and the alerts that each has to raise.
import {
  always,
  dead,
  deliveries,
  entitlement,
  from,
  notification,
  pending,
  perSecond,
  published,
  received,
  type Scenario,
  sent,
} from "./alert_figures.ts";

export const eventScenarios: Record<string, Scenario> = {
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
    but: { [pending("points")]: perSecond(10) },
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
