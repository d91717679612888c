import { fromDebian } from "./debian_package.ts";
import { CACHE, findProgram, makeFolderInCache, type Say } from "./find_program.ts";
import { redisPackage } from "./find_redis_server.ts";
import { runAs } from "./other_user.ts";

/** The oldest servers that are supported: those of Debian 12. */
export interface OldestServers {
  /** The folder with PostgreSQL's programs. */
  postgresBin: string;
  natsServer: string;
  redisServer: string;
}

const major = 15;
const bin = `usr/lib/postgresql/${major}/bin`;

/** They have names of their own, so that they are not confused with the newest on PATH or in the cache. */
const natsServer = {
  name: "oldest-nats-server",
  setting: "KENRI_OLDEST_NATS_SERVER",
  version: /nats-server: v(2\.9\.[\w.-]+)/,
  sources: [{
    name: "Debian's package",
    fetchInto: (folder: string, say: Say) =>
      fromDebian(
        { name: "nats-server", program: "usr/sbin/nats-server", newer: false },
        folder,
        say,
      ),
  }],
  advice: "Debian 12 has one (apt-get download nats-server; dpkg -x)",
};

const redisServer = {
  name: "oldest-redis-server",
  setting: "KENRI_OLDEST_REDIS_SERVER",
  version: /Redis server v=(7\.0\.[\w.-]+)/,
  sources: [{
    name: "Debian's package",
    fetchInto: (folder: string, say: Say) =>
      fromDebian({ ...redisPackage, newer: false }, folder, say),
  }],
  advice: "Debian 12 has one (apt-get install redis-server)",
};

/** Throws if one of them is not there; only Debian 12 has all. */
export async function findOldestServers(say: Say): Promise<OldestServers> {
  return {
    postgresBin: await findOldestPostgres(say),
    natsServer: await findProgram(natsServer, say),
    redisServer: await findProgram(redisServer, say),
  };
}

async function findOldestPostgres(say: Say): Promise<string> {
  const named = Deno.env.get("KENRI_OLDEST_POSTGRES_BIN");
  const kept = `${CACHE}/postgresql-${major}`;
  for (const folder of named ? [named] : [`/${bin}`, `${kept}/${bin}`]) {
    if (await isOldest(folder)) return folder;
  }
  if (named) {
    throw new Error(`KENRI_OLDEST_POSTGRES_BIN is "${named}", which has no PostgreSQL ${major}`);
  }
  await fetchPostgres(kept, say);
  if (await isOldest(`${kept}/${bin}`)) return `${kept}/${bin}`;
  throw new Error(`The PostgreSQL in "${kept}" does not run on this machine`);
}

async function isOldest(folder: string): Promise<boolean> {
  const { success, stdout } = await runAs(undefined, `${folder}/postgres`, ["--version"])
    .catch(() => ({ success: false, stdout: "" }));
  return success && stdout.includes(` ${major}.`);
}

/** The server needs more files than its program, so the whole package is kept. */
async function fetchPostgres(kept: string, say: Say): Promise<void> {
  const name = `postgresql-${major}`;
  const folder = await makeFolderInCache();
  try {
    say(`${name}: not on this machine yet, trying Debian's package`);
    await fromDebian({ name, program: `${bin}/postgres`, newer: false }, folder, say);
    await Deno.rename(`${folder}/own/package`, kept);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
