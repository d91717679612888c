import { withDatabase } from "../../migrations/program.ts";
import type { Service } from "../../shared/process/program.ts";
import { startNats } from "../servers/nats.ts";
import { type Login, startPostgres } from "../servers/postgres.ts";
import { startRedis } from "../servers/redis.ts";
import { type DataFolder, takeDataFolder } from "./data_folder.ts";
import { databaseUrlNames, type ServerUrls } from "./settings.ts";

export interface DevServers extends AsyncDisposable {
  urls: ServerUrls;
  folder: DataFolder | undefined; // absent when all servers are given
  administrator: string | undefined; // the url of PostgreSQL's
  deaths: Promise<never>[]; // each rejects if its server ends by itself
}

/** Starts the servers that the services use and the settings do not name. */
export async function startWhatIsMissing(
  services: Record<string, Service>,
  read: (name: string) => string | undefined,
  fresh: boolean,
  say: (line: string) => void,
): Promise<DevServers> {
  const given = (name: string) => read(name) !== undefined;
  const wantsPostgres = withDatabase(services)
    .some((service) => !given(databaseUrlNames(service).service));
  const wantsNats = !given("NATS_URL");
  const wantsRedis = !given("REDIS_URL") &&
    Object.values(services).some(({ usesRedis }) => usesRedis);
  const folder = wantsPostgres || wantsNats || wantsRedis
    ? await takeDataFolder(read, fresh)
    : undefined;
  if (folder) say(folder.place);
  const [postgres, nats, redis] = await Promise.all([
    folder && wantsPostgres ? startPostgres({ dataDir: folder.postgres, say }) : undefined,
    folder && wantsNats ? startNats({ storeDir: folder.nats, say }) : undefined,
    folder && wantsRedis ? startRedis({ dataDir: folder.redis, say }) : undefined,
  ]);
  const started = { "PostgreSQL": postgres, "nats-server": nats, "redis-server": redis };
  return {
    urls: {
      ...(postgres ? { postgres: (login: Login) => postgres.urlOf(login) } : {}),
      ...(nats ? { nats: nats.url } : {}),
      ...(redis ? { redis: redis.url } : {}),
    },
    folder,
    administrator: postgres?.url,
    deaths: Object.entries(started)
      .flatMap(([name, server]) => server ? [endOf(name, server.exited)] : []),
    [Symbol.asyncDispose]: async () => {
      await Promise.all([postgres?.close(), nats?.close(), redis?.close()]);
      folder?.lock.close();
    },
  };
}

export function endOf(name: string, exited: Promise<number>): Promise<never> {
  const death = exited.then((code) => {
    throw new Error(
      `${name} ended by itself with code ${code}; start again to continue with its data`,
    );
  });
  death.catch(() => {}); // even when nothing waits for it yet, or any more
  return death;
}
