import { reasonOf } from "@kenri/shared/process/reason.ts";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

// A role can change its own settings and its password for good. So an attacker who once took over
// the service could change how functions work, or lock the service out, long afterwards. Each
// migration resets the role. What the owner may not reset stays as it is and is reported.

const powers = {
  rolsuper: "nosuperuser",
  rolcreatedb: "nocreatedb",
  rolcreaterole: "nocreaterole",
  rolreplication: "noreplication",
  rolbypassrls: "nobypassrls",
  rolinherit: "noinherit",
};

export async function resetRole(
  owner: pg.Client,
  role: string,
  password: string | null | undefined,
): Promise<void> {
  const name = pg.escapeIdentifier(role);
  const statements = [
    ...(await powersOf(owner, role)).map((power) => `alter role ${name} ${powers[power]}`),
    ...(await membershipsOf(owner, role)).map((group) => `revoke ${group} from ${name}`),
    ...(await placesOfSettings(owner, role)).map((place) => `alter role ${name}${place} reset all`),
    ...(password ? [`alter role ${name} password ${pg.escapeLiteral(password)}`] : []),
  ];
  for (const statement of statements) await tryToRun(owner, statement);
}

type Power = keyof typeof powers;

async function powersOf(owner: pg.Client, role: string): Promise<Power[]> {
  const names = Object.keys(powers) as Power[];
  const { rows: [given] } = await owner.query<Record<Power, boolean>>(
    `select ${names.join(", ")} from pg_roles where rolname = $1`,
    [role],
  );
  return names.filter((name) => given?.[name]);
}

async function membershipsOf(owner: pg.Client, role: string): Promise<string[]> {
  const { rows } = await owner.query<{ group: string }>(
    `select quote_ident(of.rolname) as group
     from pg_auth_members
     join pg_roles of on of.oid = roleid
     join pg_roles one on one.oid = member
     where one.rolname = $1`,
    [role],
  );
  return rows.map(({ group }) => group);
}

/** Settings for all databases, and for this one. */
async function placesOfSettings(owner: pg.Client, role: string): Promise<string[]> {
  const { rows } = await owner.query<{ place: string }>(
    `select coalesce(' in database ' || quote_ident(datname), '') as place
     from pg_db_role_setting
     join pg_roles on pg_roles.oid = setrole
     left join pg_database on pg_database.oid = setdatabase
     where rolname = $1 and (setdatabase = 0 or datname = current_database())`,
    [role],
  );
  return rows.map(({ place }) => place);
}

const attempts = 10;

/**
 * The error is caught inside the server, so that the statement, which may contain the password,
 * does not get into the server's log. The migration of another database may change the role at the
 * same moment.
 */
async function tryToRun(owner: pg.Client, statement: string): Promise<void> {
  for (let attempt = 1;; attempt++) {
    try {
      return void await owner.query(`do ${
        pg.escapeLiteral(`begin
          ${statement};
        exception when insufficient_privilege or object_not_in_prerequisite_state
          or feature_not_supported then null;
        end`)
      }`);
    } catch (error) {
      const isRace = reasonOf(error).includes("tuple concurrently updated");
      if (!isRace || attempt === attempts) throw error;
      await sleep(10 * attempt * Math.random());
    }
  }
}

/** What the owner could not revoke from the role. */
export async function leftOver(owner: pg.Client, role: string): Promise<string[]> {
  const [groups, places] = [await membershipsOf(owner, role), await placesOfSettings(owner, role)];
  return [
    ...groups.map((group) => `is a member of ${group}`),
    ...(places.length > 0 ? ["has settings of its own"] : []),
  ];
}
