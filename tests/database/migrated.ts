// Databases at a chosen version of the tables.
import { migrate } from "../../migrations/migrate.ts";
import { plantedPassword } from "../../tools/planted.ts";
import { dropDatabase, uniqueName, urlOf } from "../support/databases.ts";
import { migrationsOf } from "../../tools/servers/databases.ts";
import type { ServiceName } from "../../tools/services.ts";
import type { DatabaseUrls } from "../../tools/load/stage.ts";

/** Applies the files of a service up to this version, and more files as in the next release. */
export async function migrateWith(
  service: ServiceName,
  { ownerUrl, serviceUrl }: DatabaseUrls,
  { upTo = Infinity, more = {} }: { upTo?: number; more?: Record<string, string> },
): Promise<void> {
  const scratch = await Deno.makeTempDir();
  try {
    const folder = `${scratch}/${service}/migrations`;
    await Deno.mkdir(folder, { recursive: true });
    const later: string[] = []; // names of what the omitted files would create
    for (const name of (await filesOf(service)).sort()) {
      const sql = await Deno.readTextFile(`${migrationsOf(service)}/${name}`);
      if (versionOf(name) > upTo) later.push(...namesMadeBy(sql));
      else await Deno.writeTextFile(`${folder}/${name}`, grantsWithout(later, sql));
    }
    for (const [name, sql] of Object.entries(more)) {
      await Deno.writeTextFile(`${folder}/${name}`, sql);
    }
    await migrate({ folder, ownerUrl, serviceUrl, say: () => {} });
  } finally {
    await Deno.remove(scratch, { recursive: true });
  }
}

/** A new database at an older version. */
export async function databaseAt(
  service: ServiceName,
  version: number,
): Promise<DatabaseUrls & AsyncDisposable> {
  const database = uniqueName(service);
  const urls = {
    ownerUrl: urlOf({ database }),
    serviceUrl: urlOf({ database, user: `kenri_test_${service}`, password: plantedPassword }),
  };
  await migrateWith(service, urls, { upTo: version });
  return { ...urls, [Symbol.asyncDispose]: () => dropDatabase(database) };
}

export async function newestVersion(service: ServiceName): Promise<number> {
  return Math.max(...(await filesOf(service)).map(versionOf));
}

async function filesOf(service: ServiceName): Promise<string[]> {
  return await Array.fromAsync(Deno.readDir(migrationsOf(service)), ({ name }) => name);
}

function namesMadeBy(sql: string): string[] {
  return [...sql.matchAll(/^create (?:table|function) (\w+)/gm)].map(([, name = ""]) => name);
}

// Older releases write these tables directly, and not through a function of the owner.
const directWrites = `grant insert, update on entitlements to :service;
grant insert on entitlement_audit to :service;`;

// Each grant is one line.
function grantsWithout(names: string[], sql: string): string {
  const isLeftOut = (line: string) =>
    /^(grant|select) /.test(line) && names.some((name) => line.includes(` ${name}`));
  return sql.split("\n").map((line) => {
    if (!isLeftOut(line)) return line;
    return line.startsWith("select grant_direct_writes") ? directWrites : "";
  }).join("\n");
}

// grants.sql belongs to every version and is applied last.
function versionOf(name: string): number {
  return Number(/^\d{4}/.exec(name)?.[0] ?? 0);
}
