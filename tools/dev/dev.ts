// deno task dev: PostgreSQL, NATS, Redis and all services, on this machine, until Ctrl-C. Data is kept
// in .kenri/dev, or in the folder that KENRI_DATA names; `--fresh` starts without data. Servers that the
// settings name are used as they are; the others get random passwords, which are in urls.env there.
import { readDatabaseUrls } from "../../migrations/config.ts";
import { migrate } from "../../migrations/migrate.ts";
import { migrationsIn } from "../../migrations/program.ts";
import { SettingsError } from "../../shared/process/settings.ts";
import { banner } from "./banner.ts";
import { endOf, startWhatIsMissing } from "./dev_servers.ts";
import { startDevIssuer, urlOfIssuer } from "./issuer.ts";
import { checkPorts, checkSettings } from "./preconditions.ts";
import { defaultReceiverPort, receiverPort, startReceiverPage } from "./receiver_page.tsx";
import { RunningService } from "./running_service.ts";
import { keptSecrets } from "./secrets.ts";
import { devSettings, type Settings, urlOf } from "./settings.ts";
import { onSourceChange } from "./source_changes.ts";
import { writeUrls } from "./urls_file.ts";
import { root } from "../root.ts";
import * as descriptors from "../../services.ts";
import { serviceNames } from "../services.ts";

const say = (line: string) => console.log(line);
const read = (name: string) => Deno.env.get(name);
const diskIsFull =
  "The disk is full: free some space (--fresh removes the data of earlier starts), or " +
  "set KENRI_DATA to a folder on another disk";
const stopping = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  Deno.addSignalListener(signal, () => {
    // The second Ctrl-C does not wait; servers and services end with this process.
    if (stopping.signal.aborted) Deno.exit(130);
    stopping.abort();
  });
}
stopWithStarter();

try {
  await run();
  Deno.exit(0);
} catch (error) {
  const problems = error instanceof SettingsError
    ? error.problems
    : [error instanceof Error ? error.message : error];
  for (const problem of problems) console.error(problem);
  if (/No space left on device/.test(String(problems))) console.error(diskIsFull);
  Deno.exit(1);
}

async function run(): Promise<void> {
  const unknown = Deno.args.find((argument) => argument !== "--fresh");
  if (unknown) throw new Error(`There is no argument "${unknown}", only --fresh`);
  checkSettings(read);
  checkPorts(read);
  const fresh = Deno.args.includes("--fresh");
  await using servers = await startWhatIsMissing(descriptors, read, fresh, say);
  const urls = { ...servers.urls, issuer: urlOfIssuer(read) };
  const settings = devSettings(read, urls, await keptSecrets(servers.folder));
  if (stopping.signal.aborted) return;
  if (servers.folder) await writeUrls(servers.folder.urls, settings, servers.administrator);
  await migrateAll(settings);
  if (stopping.signal.aborted) return;
  await using issuer = await startDevIssuer(read, settings);
  await using receiver = await startReceiverPage(Number(read(receiverPort) ?? defaultReceiverPort));
  const services = serviceNames.map((name) => new RunningService(name, settings));
  try {
    const urls = await Promise.all(services.map((service) => service.start()));
    const listening = Object.values(descriptors).flatMap((service, at) => {
      const url = urls[at];
      return url === undefined ? [] : [{ ...service, url }];
    });
    if (listening.length === services.length && !stopping.signal.aborted) {
      const webhooks = await receiver.register(urlOf(descriptors.notification, settings));
      say(banner(listening, { webhooks, issuer: issuer?.url, urlsFile: servers.folder?.urls }));
    }
    const watching = onSourceChange(root, stopping.signal, async (changed) => {
      if (changed.has("migrations")) await migrateAll(settings);
      const affected = services.filter((service) => service.isAffectedBy(changed));
      await Promise.all(affected.map((service) => service.restart()));
    });
    const deaths = issuer
      ? [...servers.deaths, endOf("The issuer", issuer.exited)]
      : servers.deaths;
    await Promise.race([watching, ...deaths]);
  } finally {
    await Promise.all(services.map((service) => service.stop()));
  }
}

// `deno task`, which runs this, can be killed without a signal to this process.
function stopWithStarter(): void {
  const starter = Deno.ppid;
  setInterval(() => {
    if (Deno.ppid !== starter) stopping.abort();
  }, 500);
}

async function migrateAll(settings: Settings): Promise<void> {
  const read = (name: string) => settings[name] ?? Deno.env.get(name);
  for (const { service, ...access } of readDatabaseUrls(read)) {
    await migrate({ folder: root + migrationsIn(service), ...access, say });
  }
}
