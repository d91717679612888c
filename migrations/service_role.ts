import { reasonOf } from "@kenri/shared/process/reason.ts";
import pg from "pg";
import { grantsFile } from "./files.ts";
import { leftOver, resetRole } from "./reset_role.ts";

/**
 * Grants the service's role what grants.sql lists, and nothing else.
 *
 * By default every role may connect to every database. So connections to the migrated database are
 * allowed only to the service, and those to `postgres` and `template1` to nobody, if the owner may
 * change that; otherwise an administrator has to.
 */
export async function grantServiceRole(
  owner: pg.Client,
  serviceUrl: string,
  grants: string,
  say: (line: string) => void,
): Promise<void> {
  const { user: role = "", password, database } = new pg.Client({ connectionString: serviceUrl });
  if (database !== owner.database) {
    throw new Error(
      `The service's url leads to the database "${database}", the owner's to "${owner.database}"`,
    );
  }
  if (role === owner.user) {
    return say(`the service connects as the owner "${role}", so grants do not restrict it`);
  }
  if (!await roleExists(owner, role)) {
    await createRole(owner, role, password);
    say(`created the role "${role}"`);
  }
  await resetRole(owner, role, password);
  await replaceGrants(owner, role, grants);
  await closeMaintenanceDatabases(owner);
  await closeLargeObjects(owner);
  const left = [...await powersLeft(owner, role), ...await leftOver(owner, role)];
  for (const power of left) say(`warning: the role "${role}" ${power}`);
}

async function roleExists(owner: pg.Client, role: string): Promise<boolean> {
  const { rowCount } = await owner.query("select from pg_roles where rolname = $1", [role]);
  return rowCount === 1;
}

async function createRole(
  owner: pg.Client,
  role: string,
  password: string | null | undefined,
): Promise<void> {
  const statement = `create role ${pg.escapeIdentifier(role)} ` +
    "login nosuperuser nocreatedb nocreaterole noinherit noreplication nobypassrls";
  if (!await mayCreateRoles(owner)) {
    throw new Error(
      `The role "${role}" does not exist and "${owner.user}" can't create it. ` +
        `Run as an administrator: ${statement}${password ? " password '...'" : ""}`,
    );
  }
  const secret = password ? ` password ${pg.escapeLiteral(password)}` : "";
  // The migration of another database may create the role at the same time. The error is caught
  // inside the server, so that the statement with the password does not get into the server's log.
  await owner.query(`do ${
    pg.escapeLiteral(`begin
      ${statement}${secret};
    exception when duplicate_object or unique_violation then null;
    end`)
  }`);
}

async function mayCreateRoles(owner: pg.Client): Promise<boolean> {
  const { rows } = await owner.query<{ may: boolean }>(`
    select rolsuper or rolcreaterole as may
    from pg_roles
    where rolname = current_user`);
  return rows[0]?.may ?? false;
}

/** In one transaction, so that a running service is never without its rights. */
async function replaceGrants(owner: pg.Client, role: string, grants: string): Promise<void> {
  const service = pg.escapeIdentifier(role);
  await owner.query("begin");
  try {
    await admitToDatabase(owner, owner.database ?? "", role);
    await owner.query(`
      revoke all on schema public from public, ${service};
      revoke all on all tables in schema public from ${service};
      revoke all on all sequences in schema public from ${service};
      revoke all on all routines in schema public from ${service};
    `);
    await runGrants(owner, role, grants);
    await owner.query("commit");
  } catch (error) {
    await owner.query("rollback").catch(() => {});
    throw error;
  }
}

/** grants.sql names the role as `:service`, an identifier, or `:'service'`, a text. */
async function runGrants(owner: pg.Client, role: string, grants: string): Promise<void> {
  try {
    await owner.query(
      grants.replaceAll(
        /(?<!:):(service\b|'service')/g,
        (_, placeholder) =>
          placeholder === "service" ? pg.escapeIdentifier(role) : pg.escapeLiteral(role),
      ),
    );
  } catch (error) {
    throw new Error(`"${grantsFile}" failed: ${reasonOf(error)}`, { cause: error });
  }
}

/** A database that is cloned from a template does not inherit these rights. */
export async function admitToDatabase(
  owner: pg.Client,
  databaseName: string,
  role: string,
): Promise<void> {
  const database = pg.escapeIdentifier(databaseName);
  const service = pg.escapeIdentifier(role);
  await owner.query(`
    revoke all on database ${database} from public, ${service};
    grant connect on database ${database} to ${service};
  `);
}

async function closeMaintenanceDatabases(owner: pg.Client): Promise<void> {
  for (const database of await openMaintenanceDatabases(owner)) {
    // Fails for an owner who is not an administrator, and for the slower of two migrations at once.
    await owner.query(`revoke connect on database ${database} from public`).catch(() => {});
  }
}

async function openMaintenanceDatabases(owner: pg.Client): Promise<string[]> {
  const { rows } = await owner.query<{ database: string }>(`
    select quote_ident(datname) as database
    from pg_database
    where datname in ('postgres', 'template1')
      and datname <> current_database()
      and has_database_privilege('public', oid, 'CONNECT')`);
  return rows.map(({ database }) => database);
}

/** By default every role may store large objects. Only an administrator can change that. */
async function closeLargeObjects(owner: pg.Client): Promise<void> {
  for (const make of ["lo_creat(integer)", "lo_create(oid)", "lo_from_bytea(oid, bytea)"]) {
    await owner.query(`revoke execute on function pg_catalog.${make} from public`).catch(() => {});
  }
}

/** When an owner may not revoke something, PostgreSQL only warns. */
async function powersLeft(owner: pg.Client, role: string): Promise<string[]> {
  const { rows } = await owner.query<{ power: string }>(
    `
    select power
    from pg_roles, lateral (values
      (rolsuper, 'is a superuser'),
      (rolcreaterole, 'can create roles'),
      (rolcreatedb, 'can create databases'),
      (rolreplication, 'can replicate'),
      (rolbypassrls, 'bypasses row security'),
      (has_schema_privilege(rolname, 'public', 'CREATE'), 'can create tables'),
      (has_database_privilege(rolname, current_database(), 'TEMPORARY'), 'can create temporary tables')
    ) as powers (given, power)
    where rolname = $1 and given`,
    [role],
  );
  return rows.map(({ power }) => power);
}
