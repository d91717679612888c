// How a migration creates the service's role, and revokes what the role must not have.
import assert from "node:assert/strict";
import { createHash, createHmac, pbkdf2Sync } from "node:crypto";
import pg from "pg";
import { migrate } from "../../migrations/migrate.ts";
import { ask } from "../../tools/servers/asking.ts";
import {
  dropDatabase,
  dropRole,
  freshDatabase,
  uniqueName,
  urlOf,
  withClient,
} from "../support/databases.ts";
import { migrationsOf } from "../../tools/servers/databases.ts";
import { refuses } from "./refuses.ts";

Deno.test("rights that grants.sql no longer grants are revoked", async () => {
  await using database = await freshDatabase("entitlement");
  const role = pg.escapeIdentifier(new URL(database.serviceUrl).username);
  await withClient(database.ownerUrl, async (owner) => {
    await owner.query(`grant all on all tables in schema public to ${role}`);
    await owner.query(`grant update (source) on entitlement_audit to ${role}`);
    await owner.query(`grant create on schema public to ${role}`);
    await owner.query(`create function late() returns integer language sql as 'select 1'`);
    await owner.query(`revoke all on function late from public`);
    await owner.query(`grant execute on function late to ${role}`);
    await owner.query(`create sequence numbers`);
    await owner.query(`grant usage on sequence numbers to ${role}`);
    await owner.query(
      `grant all on database ${new URL(database.ownerUrl).pathname.slice(1)} to ${role}`,
    );
  });
  await migrate({ folder: migrationsOf("entitlement"), say: () => {}, ...database });
  await withClient(database.serviceUrl, async (service) => {
    await refuses(service, "delete from entitlements");
    await refuses(service, "update entitlement_audit set source = ''");
    await refuses(service, "create table mine (id integer)");
    await refuses(service, "create temporary table mine (id integer)");
    await refuses(service, "create schema mine");
    await refuses(service, "select late()");
    await refuses(service, "select nextval('numbers')");
    await service.query("select from entitlements");
  });
});

Deno.test("roles and passwords may have any characters", async (t) => {
  const passwords = [
    `it's "quoted" \\ and $$dollars$$ $& $1`,
    "with spaces, a % and %41 / ? # @ : & = +",
    "größe-密码-🔑",
    ":service ; drop table entitlements; --",
  ];
  for (const password of passwords) {
    await t.step(password, async () => {
      const database = uniqueName("odd");
      const role = `${password} ${crypto.randomUUID().slice(0, 8)}`;
      const serviceUrl = urlOf({ database, user: role, password });
      try {
        await migrateEntitlement(urlOf({ database }), serviceUrl);
        const used = await withClient(serviceUrl, async (service) => {
          await service.query("select from entitlements");
          return (await service.query("select current_user as role")).rows[0].role;
        });
        assert.equal(used, role);
        assert.ok(await hasPassword(role, password));
      } finally {
        await dropDatabase(database);
        await dropRole(role);
      }
    });
  }
});

Deno.test("an owner who is not a superuser can run all migrations", async () => {
  await using owner = await makeOwner("createdb createrole");
  const role = uniqueName("role");
  const serviceUrl = urlOf({ database: owner.database, user: role, password: "test" });
  try {
    const lines = await migrateEntitlement(owner.url, serviceUrl);
    assert.deepEqual(lines.filter((line) => line.includes("warning")), []);
    await withClient(serviceUrl, async (service) => {
      await service.query("select make_audit_partitions(5)");
      await refuses(service, "create table mine (id integer)");
      await refuses(service, "create temporary table mine (id integer)");
    });
  } finally {
    await owner.dropDatabase();
    await dropRole(role);
  }
});

Deno.test("an owner who may create neither database nor role is told what to run", async () => {
  await using owner = await makeOwner("nocreatedb nocreaterole");
  const role = uniqueName("role");
  const serviceUrl = urlOf({ database: owner.database, user: role, password: "top-secret" });
  const migrateIt = () => migrateEntitlement(owner.url, serviceUrl);

  const createDatabase = await sentenceToRun(migrateIt());
  assert.match(createDatabase, /^create database/);
  await asAdministrator(createDatabase);

  const createRole = await sentenceToRun(migrateIt());
  assert.match(createRole, /^create role .* password '\.\.\.'$/);
  await asAdministrator(createRole);

  await migrateIt();
  await owner.dropDatabase();
  await dropRole(role);
});

Deno.test("powers that the owner can't take away from the role are reported", async () => {
  await using owner = await makeOwner("createdb createrole");
  const role = uniqueName("role");
  const group = uniqueName("group");
  await asAdministrator(`create role "${group}"`);
  await asAdministrator(
    `create role "${role}" login superuser createdb createrole replication bypassrls in role "${group}"`,
  );
  await asAdministrator(`alter role "${role}" set datestyle = 'SQL, DMY'`);
  try {
    const serviceUrl = urlOf({ database: owner.database, user: role });
    const lines = await migrateEntitlement(owner.url, serviceUrl);
    const powers = ["is a superuser", "can create roles", "can create databases", "can replicate"]
      .concat("bypasses row security", "has settings of its own");
    // Before PostgreSQL 16 a role that may create roles may remove any role from a group.
    if (await serverVersion() >= 160_000) powers.push(`is a member of ${group}`);
    for (const power of powers) {
      assert.ok(lines.includes(`entitlement: warning: the role "${role}" ${power}`), power);
    }
  } finally {
    await owner.dropDatabase();
    await dropRole(role);
    await dropRole(group);
  }
});

// The powers and settings that an attacker or a hasty administrator may have left.
Deno.test("each migration resets the role to what it should be", async () => {
  const database = uniqueName("odd");
  const role = uniqueName("role");
  const group = uniqueName("group");
  const url = urlOf({ database, user: role, password: "test" });
  const migrateIt = async () => {
    const lines = await migrateEntitlement(urlOf({ database }), url);
    assert.deepEqual(lines.filter((line) => line.includes("warning")), []);
  };
  try {
    await migrateIt();
    await withClient(url, async (service) => {
      await service.query(`alter role "${role}" password 'mine'`);
      await service.query(`alter role "${role}" set datestyle = 'SQL, DMY'`);
      await service.query(
        `alter role "${role}" in database "${database}" set timezone = 'Asia/Tokyo'`,
      );
    });
    await asAdministrator(`create role "${group}"`);
    await asAdministrator(`grant "${group}" to "${role}"`);
    await asAdministrator(
      `alter role "${role}" superuser createdb createrole inherit replication bypassrls`,
    );
    await migrateIt();
    assert.ok(await hasPassword(role, "test"));
    const { rows: [left] } = await withClient(urlOf({ database }), (owner) =>
      owner.query(
        `select rolsuper, rolcreatedb, rolcreaterole, rolinherit, rolreplication, rolbypassrls,
           (select count(*)::int from pg_db_role_setting where setrole = pg_roles.oid) as settings,
           (select count(*)::int from pg_auth_members where member = pg_roles.oid) as groups
         from pg_roles where rolname = $1`,
        [role],
      ));
    assert.deepEqual(Object.values(left), [...Array(6).fill(false), 0, 0]);
  } finally {
    await dropDatabase(database);
    await dropRole(role);
    await dropRole(group);
  }
});

/** Returns the lines that the migration printed. */
async function migrateEntitlement(ownerUrl: string, serviceUrl: string): Promise<string[]> {
  const lines: string[] = [];
  const say = (line: string) => void lines.push(line);
  await migrate({ folder: migrationsOf("entitlement"), ownerUrl, serviceUrl, say });
  return lines;
}

async function sentenceToRun(migrated: Promise<unknown>): Promise<string> {
  const error = await migrated.then(() => new Error("it was not refused"), (error: Error) => error);
  const [, statement] = /Run as an administrator: (.*)$/.exec(error.message) ?? [];
  assert.ok(statement, error.message);
  assert.doesNotMatch(error.message, /top-secret/);
  return statement;
}

async function asAdministrator(statement: string): Promise<void> {
  await withClient(urlOf({ database: "postgres" }), (admin) => admin.query(statement));
}

/** The role and the name of a database that does not exist yet. */
async function makeOwner(powers: string) {
  const database = uniqueName("owned");
  const role = uniqueName("owner");
  await asAdministrator(`create role "${role}" login ${powers} password 'test'`);
  // The first migration on this server has closed it to all.
  await asAdministrator(`grant connect on database postgres to "${role}"`);
  return {
    database,
    url: urlOf({ database, user: role, password: "test" }),
    dropDatabase: () => dropDatabase(database),
    [Symbol.asyncDispose]: async () => {
      await asAdministrator(`revoke connect on database postgres from "${role}"`);
      await dropDatabase(database);
      await dropRole(role);
    },
  };
}

/** Works even if the test server asks nobody for a password. */
async function hasPassword(role: string, password: string): Promise<boolean> {
  const { rows: [row] } = await withClient(
    urlOf({ database: "postgres" }),
    (admin) => admin.query("select rolpassword from pg_authid where rolname = $1", [role]),
  );
  const [, iterations = "", salt = "", storedKey] =
    /^SCRAM-SHA-256\$(\d+):([^$]+)\$([^:]+):/.exec(row.rolpassword) ?? [];
  const salted = pbkdf2Sync(
    password,
    Buffer.from(salt, "base64"),
    Number(iterations),
    32,
    "sha256",
  );
  const clientKey = createHmac("sha256", salted).update("Client Key").digest();
  return createHash("sha256").update(clientKey).digest("base64") === storedKey;
}

async function serverVersion(): Promise<number> {
  const [found] = await ask<{ version: number }>(
    urlOf({ database: "postgres" }),
    "select current_setting('server_version_num')::int as version",
  );
  return found?.version ?? 0;
}
