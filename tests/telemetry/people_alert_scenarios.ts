// Changes of the figures of accounts and the gateway, and the alerts that each has to raise.
import {
  account,
  always,
  from,
  gateway,
  logins,
  me,
  perSecond,
  profiles,
  type Scenario,
} from "./alert_figures.ts";

const watermarkAge = `gateway_account_watermark_age_seconds{${gateway}}`;
const backlogAge = `account_outbox_backlog_age_seconds{${account}}`;
const connected = (service: string) => `kenri_nats_connected{${service}}`;

export const peopleScenarios: Record<string, Scenario> = {
  "no replica of account": { fires: ["AccountDown"], but: { [`up{${account}}`]: from(48, 1, 0) } },
  "no replica of the gateway": {
    fires: ["GatewayDown"],
    but: { [`up{${gateway}}`]: from(48, 1, 0) },
  },
  "the account database is unavailable": {
    fires: ["AccountDatabaseAway"],
    but: { [`kenri_database_up{${account}}`]: from(48, 1, 0) },
  },
  "people do not log in here": {
    fires: [],
    but: {
      ...{ [`up{${account}}`]: "", [`up{${gateway}}`]: "", [watermarkAge]: "", [backlogAge]: "" },
      ...{ [`kenri_database_up{${account}}`]: "", [logins("completed")]: "" },
    },
  },
  "one login of five fails": {
    fires: ["LoginsFail", "LoginsFailSlowly"],
    but: { [logins("unavailable")]: perSecond(2.5) },
  },
  "one login of fifty fails": {
    fires: ["LoginsFailSlowly"],
    but: { [logins("error")]: perSecond(0.2) },
  },
  "one login of a thousand fails": { fires: [], but: { [logins("error")]: perSecond(0.01) } },
  "a quarter of the logins is refused": {
    fires: [],
    but: { [logins("refused")]: perSecond(3) },
  },
  "nearly all logins are refused": {
    fires: ["LoginsRefused"],
    but: { [logins("refused")]: perSecond(100) },
  },
  "a gateway turns away people who want to log in": {
    fires: ["ArrivalsTurnedAway"],
    but: { 'kenri_refused_total{job="gateway",limit="arrivals_at_once"}': perSecond(1) },
  },
  "two logins are refused in a quiet night": {
    fires: [],
    but: { [logins("completed")]: always(7), [logins("refused")]: from(45, 0, 2) },
  },
  "a gateway hears no watermark": {
    fires: ["GatewayUncertain"],
    but: { [watermarkAge]: from(45, 0.5, 90) },
  },
  "a gateway hears no watermark because NATS is unavailable": {
    fires: ["NatsAway"],
    but: {
      [watermarkAge]: from(45, 0.5, 90),
      [connected(gateway)]: from(45, 1, 0),
    },
  },
  "events of accounts wait": {
    fires: ["AccountEventsStandStill"],
    but: { [backlogAge]: from(45, 0, 90) },
  },
  "events of accounts wait for NATS": {
    fires: ["NatsAway"],
    but: { [backlogAge]: from(45, 0, 90), [connected(account)]: from(45, 1, 0) },
  },
  "a dead event of an account": {
    fires: ["DeadAccountEvents"],
    but: { [`account_outbox_failed_current{${account}}`]: always(1) },
  },
  "a service behind the gateway fails": {
    fires: ["ServiceBehindFails"],
    but: { [`kenri_breaker_open{${gateway},service="entitlement"}`]: from(40, 0, 1) },
  },
  "a service behind the gateway has failed once": {
    fires: [],
    but: { [`kenri_breaker_open{${gateway},service="entitlement"}`]: from(99, 0, 1) },
  },
  "one answer of five to /v1/me is late": {
    fires: ["MeLate", "MeLateSlowly"],
    but: me("0.1", 10, 8),
  },
  "one answer of fifty to /v1/me is late": { fires: ["MeLateSlowly"], but: me("0.1", 50, 49) },
  "most profiles are late": {
    fires: ["ProfilesLate", "ProfilesLateSlowly"],
    but: profiles("1", 10, 1),
  },
  "one profile of ten is late": { fires: ["ProfilesLateSlowly"], but: profiles("1", 10, 9) },
};
