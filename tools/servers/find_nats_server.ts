import { fileURLToPath } from "node:url";
import { natsFromDebian } from "./nats_from_debian.ts";
import { natsFromRelease } from "./nats_from_release.ts";

type Say = (line: string) => void;

/** Below the project root and ignored by git. */
const NATS_CACHE = fileURLToPath(new URL("../../.kenri/bin", import.meta.url));

/** The path of a nats-server that runs, from the nearest place that has one. */
export async function findNatsServer(say: Say = () => {}): Promise<string> {
  return await fromSetting(say) ?? await fromPath(say) ?? await fromCache(say) ??
    await keep("Debian's package", natsFromDebian, say) ??
    await keep("the official release", natsFromRelease, say) ??
    notFound();
}

/** A setting that doesn't work is an error: whoever made it wants this one and no other. */
async function fromSetting(say: Say): Promise<string | undefined> {
  const path = Deno.env.get("KENRI_NATS_SERVER");
  if (!path) return undefined;
  const version = await versionOf(path);
  if (!version) throw new Error(`KENRI_NATS_SERVER is "${path}", which is not a nats-server`);
  say(`nats-server ${version}: "${path}", as KENRI_NATS_SERVER says`);
  return path;
}

async function fromPath(say: Say): Promise<string | undefined> {
  // Debian puts it into /usr/sbin, which is on root's PATH only.
  for (const folder of [...(Deno.env.get("PATH") ?? "").split(":"), "/usr/sbin"]) {
    const path = `${folder}/nats-server`;
    const version = await versionOf(path);
    if (!version) continue;
    say(`nats-server ${version}: "${path}", found on PATH`);
    return path;
  }
  return undefined;
}

async function fromCache(say: Say): Promise<string | undefined> {
  const names = await Array.fromAsync(Deno.readDir(NATS_CACHE), (entry) => entry.name)
    .catch(() => []);
  const cached = names.filter((name) => name.startsWith("nats-server-"));
  const newestFirst = new Intl.Collator("en", { numeric: true });
  for (const name of cached.sort((a, b) => newestFirst.compare(b, a))) {
    const path = `${NATS_CACHE}/${name}`;
    const version = await versionOf(path);
    if (!version) continue;
    say(`nats-server ${version}: "${path}", from the project's cache`);
    return path;
  }
  return undefined;
}

/** Fetches it into a temporary folder and keeps it in the cache. */
async function keep(
  source: string,
  fetchInto: (folder: string, say: Say) => Promise<string>,
  say: Say,
): Promise<string | undefined> {
  await Deno.mkdir(NATS_CACHE, { recursive: true });
  const folder = await Deno.makeTempDir({ dir: NATS_CACHE, prefix: "fetching-" });
  try {
    say(`nats-server: not on this machine yet, trying ${source}`);
    const fetched = await fetchInto(folder, say);
    const version = await versionOf(fetched);
    if (!version) throw new Error(`"${fetched}" does not run on this machine`);
    // Within one file system a rename is atomic: a second process at work sees all of it or nothing.
    const kept = `${NATS_CACHE}/nats-server-${version}`;
    await Deno.rename(fetched, kept);
    say(`nats-server ${version}: "${kept}", from ${source}`);
    return kept;
  } catch (error) {
    say(`nats-server: ${source} did not work: ${error instanceof Error ? error.message : error}`);
    return undefined;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function versionOf(path: string): Promise<string | undefined> {
  try {
    const { success, stdout } = await new Deno.Command(path, { args: ["--version"] }).output();
    const version = new TextDecoder().decode(stdout).match(/nats-server: v([\w.-]+)/)?.[1];
    return success ? version : undefined;
  } catch {
    return undefined;
  }
}

function notFound(): never {
  throw new Error(
    "No nats-server found or fetched. Install one (Debian: apt-get install nats-server, macOS: " +
      "brew install nats-server, else https://github.com/nats-io/nats-server/releases)\n" +
      "or set KENRI_NATS_SERVER to the path of one",
  );
}
