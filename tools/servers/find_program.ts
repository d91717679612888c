import { root } from "../root.ts";
import { START } from "./program_folder.ts";

export type Say = (line: string) => void;

/** A program that is not part of the project, and the places to find it. */
export interface Program {
  name: string;
  /** Other names that it may have on PATH. */
  otherNames?: string[];
  /** The variable that names its path. */
  setting: string;
  /** Matches what a supported one prints for `--version`; the first group is the version. */
  version: RegExp;
  /** Each fetches it into an empty folder and returns its path, or that of a folder with all it needs. */
  sources: { name: string; fetchInto: (folder: string, say: Say) => Promise<string> }[];
  /** What to do if it is not found anywhere. */
  advice: string;
}

/** The cache, below the project root and ignored by git. */
export const CACHE = `${root}.kenri/bin`;

/** Returns the path of the first one that runs. */
export async function findProgram(program: Program, say: Say): Promise<string> {
  const path = await fromSetting(program, say) ?? await fromPath(program, say) ??
    await fromCache(program, say);
  if (path) return path;
  for (const { name, fetchInto } of program.sources) {
    const kept = await keep(program, name, fetchInto, say);
    if (kept) return kept;
  }
  const { name, setting, advice } = program;
  throw new Error(`No ${name} found or fetched. ${advice}\nor set ${setting} to the path of one`);
}

/** A setting that doesn't work is an error, because the developer wants exactly this program. */
async function fromSetting(program: Program, say: Say): Promise<string | undefined> {
  const { name, setting } = program;
  const path = Deno.env.get(setting);
  if (!path) return undefined;
  const version = await versionOf(program, path);
  if (!version) throw new Error(`${setting} is "${path}", which is no ${name} that can be used`);
  say(`${name} ${version}: "${path}", as ${setting} says`);
  return path;
}

async function fromPath(program: Program, say: Say): Promise<string | undefined> {
  // Debian puts servers into /usr/sbin, which is on root's PATH only.
  const folders = [...(Deno.env.get("PATH") ?? "").split(":"), "/usr/sbin"];
  for (const name of [program.name, ...program.otherNames ?? []]) {
    for (const path of folders.map((folder) => `${folder}/${name}`)) {
      const version = await versionOf(program, path);
      if (!version) continue;
      say(`${name} ${version}: "${path}", found on PATH`);
      return path;
    }
  }
  return undefined;
}

async function fromCache(program: Program, say: Say): Promise<string | undefined> {
  const files = await Array.fromAsync(Deno.readDir(CACHE), (entry) => entry.name).catch(() => []);
  const cached = files.filter((file) => file.startsWith(`${program.name}-`));
  const newestFirst = new Intl.Collator("en", { numeric: true });
  for (const file of cached.sort((a, b) => newestFirst.compare(b, a))) {
    const path = await programAt(`${CACHE}/${file}`);
    const version = await versionOf(program, path);
    if (!version) continue;
    say(`${program.name} ${version}: "${path}", from the project's cache`);
    return path;
  }
  return undefined;
}

/** Fetches it into a temporary folder and keeps it in the cache. */
async function keep(
  program: Program,
  source: string,
  fetchInto: (folder: string, say: Say) => Promise<string>,
  say: Say,
): Promise<string | undefined> {
  const { name, setting, advice } = program;
  const folder = await makeFolderInCache().catch((error) => {
    throw new Error(
      `No ${name} found, and none can be kept in "${CACHE}" (${error.message}). ${advice}\n` +
        `or set ${setting} to the path of one`,
    );
  });
  try {
    say(`${name}: not on this machine yet, trying ${source}`);
    const fetched = await fetchInto(folder, say);
    const version = await versionOf(program, await programAt(fetched));
    if (!version) throw new Error(`"${fetched}" does not run here, or is too old`);
    // Within one file system a rename is atomic: a second process at work sees all of it or
    // nothing.
    const kept = `${CACHE}/${name}-${version}`;
    await Deno.rename(fetched, kept).catch(async (error) => {
      // A folder does not take the place of another one, which such a process has just kept.
      if (!await versionOf(program, await programAt(kept))) throw error;
    });
    say(`${name} ${version}: "${kept}", from ${source}`);
    return await programAt(kept);
  } catch (error) {
    say(`${name}: ${source} did not work: ${error instanceof Error ? error.message : error}`);
    return undefined;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function programAt(path: string): Promise<string> {
  const isFolder = await Deno.stat(path).then((found) => found.isDirectory, () => false);
  return isFolder ? `${path}/${START}` : path;
}

/** Makes a folder on the file system of the cache, so that files can be renamed into it. */
export async function makeFolderInCache(): Promise<string> {
  await Deno.mkdir(CACHE, { recursive: true });
  return await Deno.makeTempDir({ dir: CACHE, prefix: "fetching-" });
}

async function versionOf({ version }: Program, path: string): Promise<string | undefined> {
  try {
    const { success, stdout } = await new Deno.Command(path, { args: ["--version"] }).output();
    return success ? new TextDecoder().decode(stdout).match(version)?.[1] : undefined;
  } catch {
    return undefined;
  }
}
