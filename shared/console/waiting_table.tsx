import type { JSX } from "hono/jsx/jsx-runtime";
import type { WaitingRow } from "../operators/status.ts";
import { subjectTitle } from "../operators/subject.ts";
import { Table, When } from "./layout.tsx";
import { TimelineLink } from "./search.tsx";

// The rows that have waited longest, and what each waits for.

export function WaitingTable({ noun, rows }: { noun: string; rows: WaitingRow[] }): JSX.Element {
  const hasVersions = rows.some(({ version }) => version !== undefined);
  const version = (shown: string | number | undefined) => hasVersions ? [shown ?? "–"] : [];
  return (
    <Table
      label={`The ${noun}s that have waited longest`}
      columns={[
        ...[
          "Since",
          subjectTitle(rows),
          "Key",
          ...version("Version").map(String),
        ],
        ...["State", "Attempts", "Next attempt", "Error"],
      ]}
      rows={rows.map((row) => [
        <When at={row.created_at} />,
        <TimelineLink of={row} />,
        row.aggregate_key,
        ...version(row.version),
        row.locked_by === null ? row.status : `${row.status} by ${row.locked_by}`,
        row.attempt_count,
        <When at={row.next_retry_at} />,
        row.last_error ?? "–",
      ])}
      none={`No ${noun} is waiting.`}
    />
  );
}
