// deno task dev: PostgreSQL, NATS and both services, on this machine, until Ctrl-C. Data is kept in
// .kenri/dev; `--fresh` begins with none. Servers that the settings name are used as they are.
import { migrate } from "../../migrations/migrate.ts";
import { startNats } from "../servers/nats.ts";
import { startPostgres } from "../servers/postgres.ts";
import { banner } from "./banner.ts";
import { RunningService } from "./running_service.ts";
import { dataFolder, devSettings, type Settings } from "./settings.ts";
import { onSourceChange } from "./source_changes.ts";

const root = new URL("../../", import.meta.url);
const say = (line: string) => console.log(line);
const stopping = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  Deno.addSignalListener(signal, () => stopping.abort());
}

try {
  await run();
  Deno.exit(0);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  Deno.exit(1);
}

async function run(): Promise<void> {
  if (Deno.args.includes("--fresh")) await removeData();
  await using servers = await startWhatIsMissing();
  const settings = devSettings((name) => Deno.env.get(name), servers.urls);
  await migrateBoth(settings);
  const services = [
    new RunningService("entitlement", settings),
    new RunningService("notification", settings),
  ];
  try {
    await Promise.all(services.map((service) => service.start()));
    say(banner(settings));
    const watching = onSourceChange(root, stopping.signal, async (changed) => {
      if (changed.has("migrations")) await migrateBoth(settings);
      const affected = services.filter((service) => service.isAffectedBy(changed));
      await Promise.all(affected.map((service) => service.restart()));
    });
    await Promise.race([watching, ...servers.deaths]);
  } finally {
    await Promise.all(services.map((service) => service.stop()));
  }
}

interface DevServers extends AsyncDisposable {
  urls: { postgres?: string; nats?: string };
  deaths: Promise<never>[]; // each rejects when its server ends by itself
}

async function startWhatIsMissing(): Promise<DevServers> {
  const given = (name: string) => Deno.env.get(name) !== undefined;
  const wantsPostgres = !given("ENTITLEMENT_DATABASE_URL") || !given("NOTIFICATION_DATABASE_URL");
  const [postgres, nats] = await Promise.all([
    wantsPostgres ? startPostgres({ dataDir: `${dataFolder}/postgres`, say }) : undefined,
    given("NATS_URL") ? undefined : startNats({ storeDir: `${dataFolder}/nats`, say }),
  ]);
  const deaths = [["PostgreSQL", postgres], ["nats-server", nats]] as const;
  return {
    urls: {
      ...(postgres ? { postgres: postgres.url } : {}),
      ...(nats ? { nats: nats.url } : {}),
    },
    deaths: deaths.flatMap(([name, server]) => server ? [endOf(name, server.exited)] : []),
    [Symbol.asyncDispose]: async () => {
      await Promise.all([postgres?.close(), nats?.close()]);
    },
  };
}

async function endOf(name: string, exited: Promise<number>): Promise<never> {
  const code = await exited;
  throw new Error(`${name} ended by itself with code ${code}; start again to go on with its data`);
}

async function migrateBoth(settings: Settings): Promise<void> {
  for (const service of ["entitlement", "notification"]) {
    const name = service.toUpperCase();
    await migrate({
      folder: new URL(`migrations/${service}`, root).pathname,
      ownerUrl: settings[`${name}_MIGRATION_DATABASE_URL`] ?? "",
      serviceUrl: settings[`${name}_DATABASE_URL`] ?? "",
      say,
    });
  }
}

async function removeData(): Promise<void> {
  try {
    await Deno.remove(dataFolder, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
