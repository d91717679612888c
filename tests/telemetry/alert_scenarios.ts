// Changes of the figures, and the alerts that each has to raise.
import {
  always,
  carriedOut,
  claims,
  commands,
  deliveries,
  entitlement,
  figures,
  from,
  list,
  logins,
  me,
  notification,
  orders,
  pending,
  perSecond,
  profiles,
  published,
  reads,
  received,
  type Scenario,
  sent,
  type Series,
} from "./alert_figures.ts";
import { eventScenarios } from "./event_alert_scenarios.ts";
import { matchScenarios } from "./match_alert_scenarios.ts";
import { orderScenarios } from "./order_alert_scenarios.ts";
import { peopleScenarios } from "./people_alert_scenarios.ts";

const without = (series: Series): Series =>
  Object.fromEntries(Object.keys(series).map((name) => [name, ""]));

export const scenarios: Record<string, Scenario> = {
  "all is well": { fires: [], but: {} },
  "all is well, as Prometheus 3 writes the buckets": {
    fires: [],
    but: {
      ...without({ ...reads("1", 10, 10), ...published("5", 10, 10), ...sent("30", 10, 10) }),
      ...without({ ...carriedOut("1", 10, 10), ...profiles("1", 10, 10) }),
      ...profiles("1.0", 10, 10),
      ...carriedOut("1.0", 10, 10),
      ...reads("1.0", 10, 10),
      ...published("5.0", 10, 10),
      ...sent("30.0", 10, 10),
    },
  },
  "nobody asks for anything": {
    fires: [],
    but: {
      ...reads("1", 0, 0),
      ...carriedOut("1", 0, 0),
      ...profiles("1", 0, 0),
      ...me("0.1", 0, 0),
      [logins("completed")]: always(0),
      ...published("5", 0, 0),
      ...sent("30", 0, 0),
      [commands("applied")]: always(0),
      [received("handled")]: always(0),
      [deliveries("sent")]: always(0),
      [orders("succeeded")]: always(0),
      [pending("entitlements")]: always(0),
      [pending("points")]: always(0),
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
  "spends of points wait for their commit": {
    fires: ["ChangesWait"],
    but: { [`kenri_batch_waiting_current{${entitlement},batch="points"}`]: always(900) },
  },
  "due reservations gather for their commit": {
    fires: [],
    but: { [`kenri_batch_waiting_current{${entitlement},batch="due_points"}`]: always(900) },
  },
  "lists are slow": { fires: ["ReadsLate", "ReadsLateSlowly"], but: reads("1", 10, 2) },
  "lists fail quickly": {
    fires: ["ReadsLate", "ReadsLateSlowly"],
    but: figures("kenri_http_request_duration_seconds", `${list},status="503"`, "1", 50, 50),
  },
  "one list of ten is slow": { fires: ["ReadsLateSlowly"], but: reads("1", 10, 9) },

  "no replica carries out reservations": {
    fires: ["ReservationsStandStill"],
    but: {
      [`entitlement_reservations_due_age_seconds{${entitlement}}`]: from(47, 0, 90),
      ...carriedOut("1", 0, 0),
    },
  },
  "a flood of reservations is carried out": {
    fires: [],
    but: { [`entitlement_reservations_due_age_seconds{${entitlement}}`]: always(90) },
  },
  "a reservation is due for ever while others are carried out": {
    fires: ["ReservationsStandStill"],
    but: { [`entitlement_reservations_due_age_seconds{${entitlement}}`]: always(700) },
  },
  "one reservation of five is late": {
    fires: ["ReservationsLate", "ReservationsLateSlowly"],
    but: carriedOut("1", 10, 8),
  },
  "one reservation of fifty is late": {
    fires: ["ReservationsLateSlowly"],
    but: carriedOut("1", 50, 49),
  },
  "one reservation of 200 is late": { fires: [], but: carriedOut("1", 200, 199) },
  "a dead reservation": {
    fires: ["DeadReservations"],
    but: { [`entitlement_reservations_failed_current{${entitlement}}`]: always(1) },
  },

  ...eventScenarios,
  ...orderScenarios,
  ...peopleScenarios,
  ...matchScenarios,
};
