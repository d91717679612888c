import type { Command } from "./command.ts";
import type { ServiceName } from "./routes.ts";
import { ageOf, table, time } from "./text.ts";

export const outbox: Command = waiting(
  "outbox",
  "entitlement",
  "List the events that have waited longest to be published, and why",
);

export const deliveries: Command = waiting(
  "deliveries",
  "notification",
  "List the notifications that have waited longest to be sent, and why",
);

function waiting(usage: string, service: ServiceName, summary: string): Command {
  return {
    usage,
    words: 0,
    summary,
    options: {},
    help: `
A leased row is being processed by a worker. A row with a next try has failed before; LAST ERROR is
the reason. Any other row waits for an earlier row with the same key, or for a worker.`,
    async run({ api }) {
      const { waiting, oldest } = await api.ask(`/debug/${service}/status`, {});
      return {
        problem: false,
        json: { waiting, oldest },
        text: oldest.length === 0 ? "Nothing is waiting." : [
          table(oldest, {
            "AGE": ({ created_at }) => ageOf(created_at),
            "EVENT_ID": ({ event_id }) => event_id,
            "KEY": ({ aggregate_key }) => aggregate_key,
            "STATUS": ({ status }) => status,
            "ATTEMPTS": ({ attempt_count }) => attempt_count,
            "NEXT TRY": ({ next_retry_at }) => next_retry_at && time(next_retry_at),
            "LEASED BY": ({ locked_by, lease_until }) =>
              locked_by && `${locked_by} until ${time(lease_until)}`,
            "LAST ERROR": ({ last_error }) => last_error,
          }),
          ...(waiting > oldest.length
            ? [`… of ${waiting}${waiting >= 10_000 ? " or more" : ""} that are waiting`]
            : []),
        ].join("\n"),
      };
    },
  };
}
