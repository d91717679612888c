// A made-up service with migrations, a database and a role of its own.
import { plantedPassword } from "../../tools/planted.ts";
import { basename, join } from "node:path";
import { migrate, type Migration } from "../../migrations/migrate.ts";
import { dropDatabase, dropRole, uniqueName, urlOf, withClient } from "../support/databases.ts";

export const start =
  "create table steps (id integer generated always as identity, step text not null);";
export const step = (text: string): string => `insert into steps (step) values ('${text}');`;
const grants = `
  grant usage on schema public to :service;
  grant select, insert on steps to :service;`;

export const threeFiles = {
  "0001_start.sql": start,
  "0002_second.sql": step("second"),
  "0003_third.sql": step("third"),
  "grants.sql": grants,
};

export interface Shop extends AsyncDisposable {
  folder: string;
  database: string;
  role: string;
  serviceUrl: string;
  write(file: string, text: string): Promise<void>;
  remove(file: string): Promise<void>;
  asOwner(statement: string): Promise<Record<string, unknown>[]>;
  steps(): Promise<unknown[]>;
  migrate(other?: Partial<Migration>): Promise<string[]>; // returns its output
}

export async function makeShop(files: Record<string, string>): Promise<Shop> {
  const scratch = await Deno.makeTempDir();
  const folder = join(scratch, "shop", "migrations");
  await Deno.mkdir(folder, { recursive: true });
  const write = (file: string, text: string) =>
    Deno.writeTextFile(join(folder, basename(file)), text);
  for (const [file, text] of Object.entries(files)) await write(file, text);

  const database = uniqueName("shop");
  const role = uniqueName("role");
  const ownerUrl = urlOf({ database });
  const serviceUrl = urlOf({ database, user: role, password: plantedPassword });
  const asOwner = (statement: string) =>
    withClient(ownerUrl, async (client) => (await client.query(statement)).rows);

  return {
    folder,
    database,
    role,
    serviceUrl,
    write,
    asOwner,
    remove: (file: string) => Deno.remove(join(folder, file)),
    steps: async () =>
      (await asOwner("select step from steps order by id")).map(({ step }) => step),
    migrate: async (other = {}) => {
      const said: string[] = [];
      await migrate({ folder, ownerUrl, serviceUrl, say: (line) => said.push(line), ...other });
      return said;
    },
    [Symbol.asyncDispose]: async () => {
      await dropDatabase(database);
      await dropRole(role);
      await Deno.remove(scratch, { recursive: true });
    },
  };
}
