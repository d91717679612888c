import type { OutboxStatus } from "@kenri/entitlement/operators/status.ts";
import type { DeliveryStatus } from "@kenri/notification/operators/status.ts";
import type { Command } from "./command.ts";
import type { Answer } from "./routes.ts";
import { age, ageOf, ago, count, list, table } from "./text.ts";

const waitsTooLongSeconds = 60;
const checkedTooLongAgoMs = 3 * 3_600_000;
const shownErrors = 10;

export const status: Command = {
  usage: "status",
  words: 0,
  summary: "Show whether events flow, what is waiting and what failed; start here",
  options: {},
  help: `
Asks both services for their status. Exit code 1 if a person should act: a service is not connected
to NATS, something has waited for over a minute, there are dead letters, an event was not received,
or the last reconciliation was over three hours ago.`,
  async run({ api }) {
    const [outbox, delivery] = await Promise.all([
      api.ask("/debug/entitlement/status", {}),
      api.ask("/debug/notification/status", {}),
    ]);
    const errors = [...outbox.errors, ...delivery.errors];
    const problems = problemsOf(outbox, delivery, errors);
    return {
      problem: problems.length > 0,
      json: { entitlement: outbox, notification: delivery, problems },
      text: [
        figures(outbox, delivery, errors),
        "",
        ...(errors.length > 0 ? [errorTable(errors.slice(0, shownErrors)), ""] : []),
        ...(problems.length > 0 ? problems.map((problem) => `! ${problem}`) : ["All is well."]),
      ].join("\n"),
    };
  },
};

type Errors = Answer<"/debug/entitlement/dead-letters/errors">["errors"];

export function errorTable(errors: Errors): string {
  return table(errors, {
    "LAYER": ({ layer }) => layer,
    "COUNT": ({ count }) => count,
    "OLDEST": ({ oldest }) => ageOf(oldest),
    "ERROR": ({ error }) => error,
  });
}

function problemsOf(outbox: OutboxStatus, delivery: DeliveryStatus, errors: Errors): string[] {
  const { unreceived, checked_at } = outbox;
  const lags = Date.now() - Date.parse(checked_at) > checkedTooLongAgoMs;
  return [
    ...(outbox.nats ? [] : ["entitlement is not connected to NATS"]),
    ...(delivery.nats ? [] : ["notification is not connected to NATS"]),
    ...waited(outbox, (time) => `an event has waited ${time} in the outbox: ops outbox`),
    ...waited(delivery, (time) => `a notification has waited ${time}: ops deliveries`),
    ...(errors.length > 0 ? ["there are dead letters: ops dead errors, ops dead list"] : []),
    ...(unreceived > 0 ? [`${count(unreceived, "event")} not received: ops unreceived`] : []),
    ...(lags ? [`last reconciliation ${ageOf(checked_at)} ago: ops reconcile --dry-run`] : []),
  ];
}

function waited(
  { oldest_waiting_seconds: seconds }: OutboxStatus | DeliveryStatus,
  problem: (time: string) => string,
): string[] {
  return seconds === null || seconds < waitsTooLongSeconds ? [] : [problem(age(seconds))];
}

function figures(outbox: OutboxStatus, delivery: DeliveryStatus, errors: Errors): string {
  const waiting = ({ waiting, oldest_waiting_seconds }: OutboxStatus | DeliveryStatus) =>
    waiting === 0 ? "0" : `${waiting}, the oldest for ${age(oldest_waiting_seconds)}`;
  const dead = (layer: string) =>
    errors.filter((one) => one.layer === layer).reduce((sum, { count }) => sum + count, 0);
  return list({
    "events waiting in the outbox": waiting(outbox),
    "last event published": ago(outbox.last_published_at),
    "messages not yet delivered": delivery.undelivered ?? "unknown",
    "messages not yet acknowledged": delivery.unacknowledged ?? "unknown",
    "notifications waiting": waiting(delivery),
    "dead letters of the outbox": dead("outbox"),
    "dead letters of the stream": dead("advisory"),
    "dead letters of the delivery": dead("delivery"),
    "all events received until": ago(outbox.proven_until),
    "events not received": outbox.unreceived,
  });
}
