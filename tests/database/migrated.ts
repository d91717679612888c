// Databases on the way from one version of the tables to the next.
import { migrate } from "../../migrations/migrate.ts";
import { plantedPassword } from "../../tools/planted.ts";
import { dropDatabase, uniqueName, urlOf } from "../support/databases.ts";
import { migrationsOf } from "../../tools/servers/databases.ts";
import type { ServiceName } from "../../tools/services.ts";
import type { DatabaseUrls } from "../../tools/load/stage.ts";

/** The files of a service up to this version, and more that the next release might bring. */
export async function migrateWith(
  service: ServiceName,
  { ownerUrl, serviceUrl }: DatabaseUrls,
  { upTo = Infinity, more = {} }: { upTo?: number; more?: Record<string, string> },
): Promise<void> {
  const scratch = await Deno.makeTempDir();
  try {
    const folder = `${scratch}/${service}`;
    await Deno.mkdir(folder);
    const later: string[] = []; // what is made by files that are left out
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

/** A database of its own, at a version from before the newest. */
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

// What the releases before had, who have no function of the owner to write these tables.
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

// grants.sql comes with every version, and last.
function versionOf(name: string): number {
  return Number(/^\d{4}/.exec(name)?.[0] ?? 0);
}
