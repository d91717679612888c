import type { QueueLooks, ServiceStatus } from "../operators/looks.ts";
import { subjectOf, subjectTitle } from "../operators/subject.ts";
import type { OwnCommand } from "./command.ts";
import { type NoFields, reads } from "./service_api.ts";
import { ageOf, table, time } from "./text.ts";

const route = reads<NoFields, ServiceStatus>("status");

/** The command that lists the rows that have waited longest in a queue. */
export function waiting({ noun, until, command, of }: QueueLooks<ServiceStatus>): OwnCommand {
  return {
    usage: command,
    words: 0,
    summary: `List the ${noun}s that have waited longest ${until}, and why`,
    options: {},
    help: `
A leased row is being processed by a worker. A row with a next try has failed before; LAST ERROR is
the reason. Any other row waits for an earlier row with the same key, or for a worker.`,
    async run(service) {
      const { waiting, oldest } = of(await service.ask(route, {}));
      return {
        problem: false,
        json: { waiting, oldest },
        text: oldest.length === 0 ? "Nothing is waiting." : [
          table(oldest, {
            "AGE": ({ created_at }) => ageOf(created_at),
            [`${subjectTitle(oldest).toUpperCase()}_ID`]: (row) => subjectOf(row)?.id,
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
