// Kills a service within a statement, when it is about to write a row of one table and has written
// those of others: a trigger waits there for a lock.
import { withClient } from "../../../tools/servers/asking.ts";
import type { ServiceProcess } from "../../../tools/servers/service_process.ts";
import { until } from "../../../tools/servers/wait.ts";

interface Place {
  table: string;
  statement: string; // a part of its text, as a pattern of `like`
}

const lock = 1_234_567; // no lock of a service has such a small number

export async function killInFrontOf(
  { table, statement }: Place,
  ownerUrl: string,
  name: string,
  service: ServiceProcess,
  begin: () => Promise<unknown>,
): Promise<void> {
  await withClient(ownerUrl, async (owner) => {
    await owner.query(
      `create function wait_for_lock() returns trigger language plpgsql as $$
       begin
         perform pg_advisory_xact_lock(${lock});
         return new;
       end $$`,
    );
    await owner.query(`select pg_advisory_lock(${lock})`);
    await owner.query(
      `create trigger wait_for_lock before insert on ${table}
       for each row execute function wait_for_lock()`,
    );
    const begun = begin();
    await until("it is within the statement", async () => {
      const waiting = await owner.query(
        `select from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock' and query like $1`,
        [`%${statement}%`],
      );
      return waiting.rowCount === 1;
    });
    await service.kill();
    await owner.query( // otherwise PostgreSQL finishes the statement of the dead client
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = $1`,
      [name],
    );
    await begun;
    await owner.query("drop function wait_for_lock cascade");
  });
}
