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
          table(
            ["AGE", "EVENT_ID", "KEY", "STATUS", "ATTEMPTS", "NEXT TRY", "LEASED BY", "LAST ERROR"],
            oldest.map((row) => [
              ageOf(row.created_at),
              row.event_id,
              row.aggregate_key,
              row.status,
              row.attempt_count,
              row.next_retry_at && time(row.next_retry_at),
              row.locked_by && `${row.locked_by} until ${time(row.lease_until)}`,
              row.last_error,
            ]),
          ),
          ...(waiting > oldest.length
            ? [`… of ${waiting}${waiting >= 10_000 ? " or more" : ""} that are waiting`]
            : []),
        ].join("\n"),
      };
    },
  };
}
