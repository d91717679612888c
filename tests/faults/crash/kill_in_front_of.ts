// Kills a service within a statement: a lock on the second of the tables that it writes stops it there.
import { withClient } from "../../../tools/servers/asking.ts";
import type { ServiceProcess } from "../../../tools/servers/service_process.ts";
import { until } from "../../../tools/servers/wait.ts";

export async function killInFrontOf(
  { table, rows }: { table: string; rows: string },
  ownerUrl: string,
  name: string,
  service: ServiceProcess,
  addRow: () => Promise<unknown>,
): Promise<void> {
  await withClient(ownerUrl, async (owner) => {
    await owner.query("begin");
    await owner.query(`lock table ${table} in share row exclusive mode`);
    await addRow();
    await until("it is within the statement", async () => {
      // Otherwise a transaction sees the activity as it was at its first look.
      await owner.query("select pg_stat_clear_snapshot()");
      const waiting = await owner.query(
        `select from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock' and query like $1`,
        [`with changed as (%update ${rows} row%`],
      );
      return waiting.rowCount === 1;
    });
    await service.kill();
    await owner.query( // otherwise PostgreSQL finishes the statement of the dead client
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = $1`,
      [name],
    );
    await owner.query("rollback");
  });
}
