// What the database role of a service may do besides using its tables, and for how long.
import assert from "node:assert/strict";
import { openDatabase, query, transaction } from "../../shared/postgres/postgres.ts";
import { freshDatabase, withClient } from "../support/databases.ts";
import { withDatabase } from "../../migrations/program.ts";
import * as descriptors from "../../services.ts";
import type { ServiceName } from "../../tools/services.ts";
import { refuses } from "./refuses.ts";

const services = withDatabase(descriptors).map(({ name }) => name as ServiceName);

for (const service of services) {
  Deno.test(`${service} sees no other schema, and can store nothing but rows of its tables`, async () => {
    await using database = await freshDatabase(service);
    await withClient(database.ownerUrl, async (owner) => {
      await owner.query("create schema private");
      await owner.query("create table private.secrets as select 'secret' as secret");
      await owner.query(
        "create function private.tell() returns text language sql as $$ select 'it' $$",
      );
    });
    await withClient(database.serviceUrl, async (role) => {
      for (
        const statement of [
          "select secret from private.secrets",
          "select private.tell()",
          "create table private.mine (id integer)",
          "create temporary table mine (id integer)",
          "create temporary sequence mine",
          "create temporary view mine as select 1",
          "select lo_create(0)",
          "select lo_creat(-1)",
          "select lo_from_bytea(0, 'kept')",
          "create publication mine",
          "create event trigger mine on ddl_command_start execute function pg_notify()",
          "create foreign data wrapper mine",
          "create domain mine as text",
          "alter system set work_mem = '1GB'",
          "alter database postgres set work_mem = '1GB'",
          "reindex table schema_migrations",
          "select pg_reload_conf()",
          "select pg_ls_dir('.')",
          "select pg_current_logfile()",
          "select lo_import('/etc/passwd')",
          "select rolpassword from pg_authid",
          "copy schema_migrations to '/tmp/kenri-copy'",
          "checkpoint",
        ]
      ) await refuses(role, statement);
    });
  });

  Deno.test(`${service}: long statements, lock waits and idle transactions end by themselves, and times are in UTC`, async () => {
    await using place = await freshDatabase(service);
    const database = openDatabase(place.serviceUrl, service);
    const [limits] = await query<{ statement: number; idle: number; zone: string }>(
      database,
      `select extract(epoch from current_setting('statement_timeout')::interval)::int as statement,
         extract(epoch from current_setting('idle_in_transaction_session_timeout')::interval)::int as idle,
         current_setting('timezone') as zone`,
    );
    assert.deepEqual(limits, { statement: 10, idle: 10, zone: "UTC" });
    await assert.rejects(
      transaction(database, async (tx) => {
        await tx.query("set local statement_timeout = 100"); // so that the test is quick
        await tx.query("select pg_sleep(60)");
      }),
      { code: "57014" },
    );
    await withClient(place.ownerUrl, async (owner) => {
      await owner.query("begin");
      await owner.query("lock table schema_migrations");
      await assert.rejects(
        transaction(database, async (tx) => {
          await tx.query("set local statement_timeout = 100");
          await tx.query("select from schema_migrations");
        }),
        { code: "57014" },
      );
    });
    await assert.rejects(
      transaction(database, async (tx) => {
        await tx.query("set local idle_in_transaction_session_timeout = 100");
        const ended = Promise.withResolvers<void>();
        tx.once("error", () => ended.resolve());
        await ended.promise;
        await tx.query("select 1");
      }),
      /not queryable|terminat|Connection/,
    );
    await database.end();
  });
}
