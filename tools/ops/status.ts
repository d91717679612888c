import type { Command } from "./command.ts";
import { age, ageOf, count, list, table } from "./text.ts";

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
    const dead = (layer: string) =>
      errors.filter((one) => one.layer === layer).reduce((sum, { count }) => sum + count, 0);
    const problems = [
      ...(outbox.nats ? [] : ["entitlement is not connected to NATS"]),
      ...(delivery.nats ? [] : ["notification is not connected to NATS"]),
      ...waits("the outbox", outbox, "ops outbox"),
      ...waits("the delivery", delivery, "ops deliveries"),
      ...(errors.length > 0 ? [`there are dead letters: ops dead errors, ops dead list`] : []),
      ...(outbox.unreceived > 0
        ? [`${count(outbox.unreceived, "event")} not received: ops unreceived`]
        : []),
      ...(Date.now() - Date.parse(outbox.checked_at) > checkedTooLongAgoMs
        ? [`not reconciled for ${ageOf(outbox.checked_at)}: ops reconcile --dry-run`]
        : []),
    ];
    const text = [
      list([
        ["outbox waiting", `${outbox.waiting}, the oldest ${age(outbox.oldest_waiting_seconds)}`],
        ["last published", `${ageOf(outbox.last_published_at)} ago`],
        ["in the stream, not given out", delivery.undelivered ?? "unknown"],
        ["given out, not acknowledged", delivery.unacknowledged ?? "unknown"],
        [
          "deliveries waiting",
          `${delivery.waiting}, the oldest ${age(delivery.oldest_waiting_seconds)}`,
        ],
        ["dead in outbox", dead("outbox")],
        ["dead in stream (advisories)", dead("advisory")],
        ["dead in delivery", dead("delivery")],
        ["all received until", `${ageOf(outbox.proven_until)} ago`],
        ["known as not received", outbox.unreceived],
      ]),
      ...(errors.length > 0
        ? [
          "",
          table(
            ["LAYER", "COUNT", "OLDEST", "ERROR"],
            errors.slice(0, shownErrors).map(({ layer, count, oldest, error }) => [
              layer,
              count,
              ageOf(oldest),
              error,
            ]),
          ),
        ]
        : []),
      "",
      ...(problems.length > 0 ? problems.map((problem) => `! ${problem}`) : ["All is well."]),
    ].join("\n");
    return {
      problem: problems.length > 0,
      json: { entitlement: outbox, notification: delivery, problems },
      text,
    };
  },
};

function waits(
  what: string,
  { oldest_waiting_seconds: seconds }: { oldest_waiting_seconds: number | null },
  look: string,
): string[] {
  if (seconds === null || seconds < waitsTooLongSeconds) return [];
  return [`something waits in ${what} for ${age(seconds)}: ${look}`];
}
