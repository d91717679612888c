// The metrics of a healthy system with one replica of each service, as series and values for
// promtool. alert_scenarios.ts contains the differences.

export const intervalSeconds = 60;
const samples = 240;

export const always = (value: number): string => `${value}+0x${samples}`;
export const perSecond = (rate: number): string => `0+${rate * intervalSeconds}x${samples}`;
export const from = (minute: number, before: number, value: number): string => {
  const count = minute * 60 / intervalSeconds;
  return `${before}+0x${count} ${value}+0x${samples - count}`;
};

export const entitlement = 'job="entitlement",instance="e1"';
export const notification = 'job="notification",instance="n1"';
export const sender = 'job="sender",instance="s1"';
export const account = 'job="account",instance="a1"';
export const gateway = 'job="gateway",instance="g1"';
export const matchmaking = 'job="matchmaking",instance="m1"';
export const list = `${entitlement},route="/v1/users/{user_id}/entitlements"`;

export type Series = Record<string, string>;

export interface Scenario {
  fires: string[];
  but: Series; // how it differs from a healthy system; "" removes a series
  after?: string;
}

export function figures(
  name: string,
  labels: string,
  le: string,
  all: number,
  inTime: number,
): Series {
  return {
    [`${name}_count{${labels}}`]: perSecond(all),
    [`${name}_bucket{${labels},le="${le}"}`]: perSecond(inTime),
  };
}

export const commands = (result: string): string =>
  `entitlement_command_total{${entitlement},result="${result}"}`;
export const deliveries = (result: string): string =>
  `notification_delivery_total{${notification},result="${result}"}`;
export const received = (outcome: string): string =>
  `notification_receive_total{${notification},outcome="${outcome}"}`;
export const pending = (events: string): string =>
  `notification_stream_pending_current{${notification},events="${events}"}`;
export const dead = (layer: string): string =>
  `notification_dlq_current{${notification},layer="${layer}"}`;
export const orders = (outcome: string, reason = ""): string =>
  `kenri_orders_total{${notification},adapter="webhook",outcome="${outcome}",reason="${reason}"}`;
export const logins = (result: string): string =>
  `gateway_login_total{${gateway},result="${result}"}`;
const answers = (route: string) => (le: string, all: number, inTime: number): Series =>
  figures(
    "kenri_http_request_duration_seconds",
    `${gateway},route="${route}",status="200"`,
    ...[le, all, inTime] as const,
  );
export const me = answers("/v1/me");
export const profiles = answers("/v1/users/{user_id}/profile");
export const endpoints = (state: string): string =>
  `kenri_endpoints{${notification},state="${state}"}`;
export const reads = (le: string, all: number, inTime: number): Series =>
  figures("kenri_http_request_duration_seconds", `${list},status="200"`, le, all, inTime);
export const published = (le: string, all: number, inTime: number): Series =>
  figures("entitlement_outbox_publish_delay_seconds", entitlement, le, all, inTime);
export const carriedOut = (le: string, all: number, inTime: number): Series =>
  figures("entitlement_reservation_lateness_seconds", entitlement, le, all, inTime);
export const sent = (le: string, all: number, inTime: number): Series =>
  figures("notification_delivery_e2e_delay_seconds", notification, le, all, inTime);
export const pairings = (le: string, all: number, inTime: number): Series =>
  figures("mm_pairing_delay_seconds", matchmaking, le, all, inTime);
export const ended = (result: string): string =>
  `mm_match_total{${matchmaking},result="${result}"}`;
export const claims = (le: string, inTime: number): Series =>
  figures("kenri_worker_phase_seconds", `${entitlement},phase="claim"`, le, 10, inTime);

export const healthy: Series = {
  ...Object.fromEntries([entitlement, notification, account].flatMap((labels) => [
    [`kenri_database_up{${labels}}`, always(1)],
    [`kenri_database_pool_waiting{${labels}}`, always(0)],
  ])),
  ...Object.fromEntries(
    [entitlement, notification, account, gateway, matchmaking].flatMap((labels) => [
      [`up{${labels}}`, always(1)],
      [`kenri_nats_connected{${labels}}`, always(1)],
      [`kenri_nats_unprovisioned_current{${labels}}`, always(0)],
      [`kenri_nats_connections_total{${labels}}`, always(1)],
      [`kenri_event_loop_lag_seconds{${labels}}`, always(0.01)],
      [`kenri_worker_lease_lost_total{${labels}}`, always(0)],
      [`process_start_time_seconds{${labels}}`, always(1)],
      [`process_resident_memory_bytes{${labels}}`, always(150e6)],
    ]),
  ),
  [`up{${sender}}`]: always(1),
  [commands("applied")]: perSecond(10),
  [`kenri_batch_waiting_current{${entitlement},batch="changes"}`]: always(50),
  ...reads("1", 10, 10),
  ...claims("0.01", 10),
  ...claims("+Inf", 10),
  ...carriedOut("1", 10, 10),
  [`entitlement_reservations_due_age_seconds{${entitlement}}`]: always(0),
  [`entitlement_reservations_failed_current{${entitlement}}`]: always(0),
  ...published("5", 10, 10),
  [`entitlement_outbox_backlog_age_seconds{${entitlement}}`]: always(0),
  [`entitlement_outbox_failed_current{${entitlement}}`]: always(0),
  [received("handled")]: perSecond(10),
  [deliveries("sent")]: perSecond(10),
  [dead("delivery")]: always(0),
  [dead("advisory")]: always(0),
  [dead("order")]: always(0),
  [orders("succeeded")]: perSecond(10),
  [orders("aborted", "TIMEOUT")]: always(0),
  [`kenri_orders_due_age_seconds{${notification}}`]: always(0),
  [`kenri_orders_parked_age_seconds{${notification}}`]: always(0),
  [endpoints("ACTIVE")]: always(100),
  [endpoints("FAILING")]: always(1),
  [endpoints("DISABLED")]: always(2),
  ...sent("30", 10, 10),
  [logins("completed")]: perSecond(10),
  ...me("0.1", 10, 10),
  ...profiles("1", 10, 10),
  [`gateway_account_watermark_age_seconds{${gateway}}`]: always(0.5),
  [`kenri_breaker_open{${gateway},service="account"}`]: always(0),
  [`account_outbox_backlog_age_seconds{${account}}`]: always(0),
  [`account_outbox_failed_current{${account}}`]: always(0),
  [`kenri_redis_up{${matchmaking}}`]: always(1),
  [`kenri_redis_append_only{${matchmaking}}`]: always(1),
  [`kenri_redis_errors_total{${matchmaking}}`]: always(3),
  [`mm_events_age_seconds{${matchmaking}}`]: always(0.1),
  [`mm_events_waiting{${matchmaking}}`]: always(20),
  [`mm_events_dead_current{${matchmaking}}`]: always(0),
  [`mm_pairable_age_seconds{${matchmaking},mode="casual"}`]: always(0.1),
  [`mm_pairable_age_seconds{${matchmaking},mode="rank"}`]: always(0),
  ...pairings("1", 10, 10),
  [ended("matched")]: perSecond(10),
  [ended("invalid")]: always(3),
  [`notification_backlog_age_seconds{${notification}}`]: always(0),
  [pending("entitlements")]: always(3),
  [pending("points")]: always(3),
  [`notification_overdue_current{${notification}}`]: always(0),
  [`entitlement_unreceived_current{${entitlement},state="MISSING"}`]: always(0),
  [`entitlement_proven_until_timestamp_seconds{${entitlement}}`]: `60+60x${samples}`,
};
