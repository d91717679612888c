// Changes of the figures of orders and endpoints, and the alerts that each has to raise.
import {
  always,
  dead,
  endpoints,
  from,
  notification,
  orders,
  perSecond,
  type Scenario,
  sender,
} from "./alert_figures.ts";

const dueAge = `kenri_orders_due_age_seconds{${notification}}`;

export const orderScenarios: Record<string, Scenario> = {
  "no replica of the sender": {
    fires: ["SenderDown"],
    but: { [`up{${sender}}`]: from(45, 1, 0), 'up{job="other"}': always(1) },
  },
  "there is no sender": {
    fires: [],
    but: { [`up{${sender}}`]: "", [orders("succeeded")]: always(0) },
  },
  "no order is sent": {
    fires: ["OrdersStandStill"],
    but: {
      [dueAge]: from(46, 0, 90),
      [orders("succeeded")]: always(7),
      [orders("released")]: perSecond(1),
    },
  },
  "a backlog of orders is sent": { fires: [], but: { [dueAge]: always(900) } },
  "a receiver with a long backlog": { fires: ["OrdersLate"], but: { [dueAge]: always(4_000) } },
  "one order of five is given up": {
    fires: ["OrdersFail", "OrdersFailSlowly"],
    but: { [orders("aborted", "SERVER_ERROR")]: perSecond(2.5) },
  },
  "one order of fifty is given up": {
    fires: ["OrdersFailSlowly"],
    but: { [orders("aborted", "SERVER_ERROR")]: perSecond(0.2) },
  },
  "one order of a thousand is given up": {
    fires: [],
    but: { [orders("aborted", "SERVER_ERROR")]: perSecond(0.01) },
  },
  "what callers and operators end is no failure": {
    fires: [],
    but: {
      [orders("aborted", "EXPIRED")]: perSecond(5),
      [orders("aborted", "GONE")]: perSecond(5),
      [orders("aborted", "ENDPOINT_DELETED")]: perSecond(5),
    },
  },
  "a dead order": { fires: ["DeadOrders"], but: { [dead("order")]: always(1) } },
  "most endpoints fail": {
    fires: ["EndpointsFail"],
    but: { [endpoints("ACTIVE")]: always(40), [endpoints("FAILING")]: always(60) },
  },
  "two of three endpoints fail": {
    fires: [],
    but: { [endpoints("ACTIVE")]: always(1), [endpoints("FAILING")]: always(2) },
  },
  "an endpoint was disabled": {
    fires: ["EndpointDisabled"],
    but: { [endpoints("DISABLED")]: from(45, 2, 3) },
  },
  "orders have been parked for weeks": {
    fires: ["OrdersParkedLong"],
    but: { [`kenri_orders_parked_age_seconds{${notification}}`]: always(21 * 86_400) },
  },
};
