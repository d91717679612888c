import type { Command } from "./command.ts";
import { age, ageOf, ago, count, list, table } from "./text.ts";

interface ErrorCount {
  layer: string;
  error: string;
  count: number;
  oldest: string;
}

const waitsTooLongSeconds = 60;
const checkedTooLongAgoMs = 3 * 3_600_000;
const shownErrors = 10;

export const status: Command = {
  usage: "status",
  words: 0,
  summary: "does it flow, what waits, what was given up; the first look",
  options: {},
  help: `
Asks both services how they are. Exit code 1 when a person should look: something waits for
over a minute, was given up, was not received, or was not checked for three hours.`,
  async run({ entitlement, notification }) {
    const [outbox, delivery] = await Promise.all([
      entitlement.look("status"),
      notification.look("status"),
    ]);
    const errors: ErrorCount[] = [...outbox.errors, ...delivery.errors];
    const problems = problemsOf(outbox, delivery, errors);
    return {
      problem: problems.length > 0,
      json: { entitlement: outbox, notification: delivery, problems },
      text: [
        figures(outbox, delivery, errors),
        "",
        ...(errors.length > 0 ? [mostFrequent(errors), ""] : []),
        ...(problems.length > 0 ? problems.map((problem) => `! ${problem}`) : ["All is well."]),
      ].join("\n"),
    };
  },
};

interface Half {
  nats: boolean;
  waiting: number;
  oldest_waiting_seconds: number | null;
}

interface Outbox extends Half {
  last_published_at: string | null;
  proven_until: string;
  checked_at: string;
  unreceived: number;
}

interface Delivery extends Half {
  undelivered: number | null;
  unacknowledged: number | null;
}

function problemsOf(outbox: Outbox, delivery: Delivery, errors: ErrorCount[]): string[] {
  const { unreceived, checked_at } = outbox;
  const lags = Date.now() - Date.parse(checked_at) > checkedTooLongAgoMs;
  return [
    ...(outbox.nats ? [] : ["entitlement is not connected to NATS"]),
    ...(delivery.nats ? [] : ["notification is not connected to NATS"]),
    ...waits("the outbox", outbox, "ops outbox"),
    ...waits("the delivery", delivery, "ops deliveries"),
    ...(errors.length > 0 ? ["there are dead letters: ops dead errors, ops dead list"] : []),
    ...(unreceived > 0 ? [`${count(unreceived, "event")} not received: ops unreceived`] : []),
    ...(lags ? [`not reconciled for ${ageOf(checked_at)}: ops reconcile --dry-run`] : []),
  ];
}

function waits(
  what: string,
  { oldest_waiting_seconds: seconds }: { oldest_waiting_seconds: number | null },
  look: string,
): string[] {
  if (seconds === null || seconds < waitsTooLongSeconds) return [];
  return [`something waits in ${what} for ${age(seconds)}: ${look}`];
}

function figures(outbox: Outbox, delivery: Delivery, errors: ErrorCount[]): string {
  const waiting = ({ waiting, oldest_waiting_seconds }: Half) =>
    waiting === 0 ? "0" : `${waiting}, the oldest for ${age(oldest_waiting_seconds)}`;
  const dead = (layer: string) =>
    errors.filter((one) => one.layer === layer).reduce((sum, { count }) => sum + count, 0);
  return list([
    ["outbox waiting", waiting(outbox)],
    ["last published", ago(outbox.last_published_at)],
    ["in the stream, not given out", delivery.undelivered ?? "unknown"],
    ["given out, not acknowledged", delivery.unacknowledged ?? "unknown"],
    ["deliveries waiting", waiting(delivery)],
    ["dead in outbox", dead("outbox")],
    ["dead in stream (advisories)", dead("advisory")],
    ["dead in delivery", dead("delivery")],
    ["all received until", ago(outbox.proven_until)],
    ["known as not received", outbox.unreceived],
  ]);
}

function mostFrequent(errors: ErrorCount[]): string {
  return table(
    ["LAYER", "COUNT", "OLDEST", "ERROR"],
    errors.slice(0, shownErrors).map(({ layer, count, oldest, error }) => [
      layer,
      count,
      ageOf(oldest),
      error,
    ]),
  );
}
