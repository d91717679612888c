// The leases of a table. Its statements are found by the names of the table and of its states.
import type { AnyTable } from "../../../shared/queue/leased_table.ts";
import { ask } from "../../../tools/servers/asking.ts";
import { type FaultPoint, statement } from "./fault_point.ts";
import type { Leases } from "./leased_points.ts";

interface LeasedTable<Service extends string> {
  of: Service;
  table: AnyTable;
  withholds?: string; // a statement of a later step, which would change what is left behind
  failsAs?: { status: string; retry: string }; // if it is not FAILED; part of the statement
}

export function tableLeases<Service extends string, On extends { owners: Record<Service, string> }>(
  { of, table: { description }, withholds, failsAs }: LeasedTable<Service>,
): Leases<On> {
  const { name, working, done } = description;
  const failed = failsAs?.status ?? "FAILED";
  const also = withholds === undefined ? {} : { withholds };
  const at = (text: string) => (when: FaultPoint["when"]) => ({
    ...statement(when, `update ${name} row\n  set status = ${text}`),
    ...also,
  });
  return {
    table: name,
    states: { leased: working, done: done.status, failed },
    keepsAttempts: true,
    at: {
      commit: (when) => ({ ...statement(when, "commit"), ...also }),
      claim: at(`'${working}'`),
      done: at(`'${done.status}'`),
      retry: failsAs
        ? (when) => statement(when, failsAs.retry)
        : at("'PENDING',\n    attempt_count = row.attempt_count + 1"),
      failed: at(`'${failed}'`),
    },
    runOut: ({ owners }) =>
      ask(
        owners[of],
        `update ${name}
         set status = '${working}', locked_by = 'dead', locked_at = now() - interval '2 seconds',
           lease_until = now() - interval '1 second', claim_token = gen_random_uuid()`,
      ),
  };
}
