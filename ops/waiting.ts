import type { Command } from "./command.ts";
import { ageOf, table, time } from "./text.ts";

interface Waiting {
  event_id: string;
  aggregate_key: string;
  status: string;
  created_at: string;
  attempt_count: number;
  next_retry_at: string | null;
  locked_by: string | null;
  lease_until: string | null;
  last_error: string | null;
}

export const outbox: Command = waiting({
  usage: "outbox",
  summary: "the events that wait longest to be published, and for what",
  service: "entitlement",
});

export const deliveries: Command = waiting({
  usage: "deliveries",
  summary: "the notifications that wait longest to be delivered, and for what",
  service: "notification",
});

function waiting(
  { usage, summary, service }: {
    usage: string;
    summary: string;
    service: "entitlement" | "notification";
  },
): Command {
  return {
    usage,
    words: 0,
    summary,
    options: {},
    help: `
A row that is leased is being worked on; one with a next try has failed before and says why; any other
waits for an earlier one of its key, or for a worker.`,
    async run(call) {
      const status = await call[service].look("status");
      const oldest: Waiting[] = status.oldest;
      return {
        problem: false,
        json: { waiting: status.waiting, oldest },
        text: oldest.length === 0 ? "Nothing waits." : [
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
          ...(status.waiting > oldest.length
            ? [`… of ${status.waiting}${status.waiting >= 10_000 ? " or more" : ""}`]
            : []),
        ].join("\n"),
      };
    },
  };
}
