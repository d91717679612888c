import { output } from "./output.ts";
import { gatherProgram } from "./program_folder.ts";

/** Debian 13; what it has newer than Debian 12 runs on Debian 12 as well. */
const NEWER_RELEASE = "trixie";

export interface DebianPackage {
  name: string;
  /** The program's path in the package. */
  program: string;
  /** The machine's own release may be too old, so a newer one is searched first. */
  newer: boolean;
  /**
   * It is fetched with all libraries that it needs, down to the C library, so that one of a newer
   * release runs here too. The result is then a folder.
   */
  withLibraries?: true;
}

/**
 * Unpacks a package of Debian into the folder. Nothing is installed: apt works on lists and a cache
 * of its own below the folder, so this needs no root and changes nothing on the machine.
 */
export async function fromDebian(
  wanted: DebianPackage,
  folder: string,
  say: (line: string) => void,
): Promise<string> {
  const ownRelease = await codename();
  const sources = wanted.newer ? await sourcesOf(ownRelease) : [];
  if (sources.length > 0 && ownRelease !== NEWER_RELEASE) {
    try {
      return await download(wanted, `${folder}/newer`, sources.map((line) => line(NEWER_RELEASE)));
    } catch (error) {
      const reason = error instanceof Error ? error.message : error;
      say(`${wanted.name}: not from Debian "${NEWER_RELEASE}" (${reason}), trying "${ownRelease}"`);
    }
  }
  return await download(wanted, `${folder}/own`, undefined);
}

/** By default it uses the sources of the machine. */
async function download(
  { name, program, withLibraries }: DebianPackage,
  folder: string,
  sources: string[] | undefined,
): Promise<string> {
  await Deno.mkdir(`${folder}/lists/partial`, { recursive: true });
  await Deno.mkdir(`${folder}/cache`);
  await Deno.mkdir(`${folder}/partial`);
  const options = [
    ...[`Dir::State::Lists=${folder}/lists`, `Dir::Cache=${folder}/cache`],
    `Dir::Cache::Archives=${folder}`,
  ];
  // As root apt would drop to a user who can't write here, and warn about it.
  if (Deno.uid() === 0) options.push("APT::Sandbox::User=root");
  if (sources) {
    await Deno.writeTextFile(`${folder}/sources.list`, sources.join("\n") + "\n");
    options.push(`Dir::Etc::SourceList=${folder}/sources.list`, "Dir::Etc::SourceParts=/dev/null");
  }
  const apt = ["-q", ...options.flatMap((option) => ["-o", option])];
  // One unreachable source fails the update; the download shows whether it was needed.
  await output("apt-get", [...apt, "update"], folder).catch(() => {});
  await output("apt-get", [...apt, ...withLibraries ? all(folder) : ["download"], name], folder);
  const files = await Array.fromAsync(Deno.readDir(folder), (entry) => entry.name);
  const archives = files.filter((file) => file.endsWith(".deb"));
  if (archives.length === 0) throw new Error("apt-get left no package");
  for (const archive of archives) await output("dpkg", ["-x", archive, "package"], folder);
  if (!withLibraries) return `${folder}/package/${program}`;
  return await gatherProgram(`${folder}/package`, program, `${folder}/program`);
}

/** The package and all that it depends on, because an absent list says that nothing is installed. */
function all(folder: string): string[] {
  const nothing = ["-o", `Dir::State::Status=${folder}/status`];
  return [...nothing, "--yes", "--no-install-recommends", "--download-only", "install"];
}

async function codename(): Promise<string | undefined> {
  const text = await Deno.readTextFile("/etc/os-release").catch(() => "");
  return /^ID=debian$/m.test(text) ? text.match(/^VERSION_CODENAME=(\w+)$/m)?.[1] : undefined;
}

type SourceLine = (release: string) => string;

/** The machine's own sources for its release, mirrors and keys included, for any release. */
async function sourcesOf(release: string | undefined): Promise<SourceLine[]> {
  if (!release) return [];
  const folder = "/etc/apt/sources.list.d";
  const names = await Array.fromAsync(Deno.readDir(folder), (entry) => `${folder}/${entry.name}`)
    .catch(() => []);
  const lines: SourceLine[] = [];
  for (const file of ["/etc/apt/sources.list", ...names]) {
    const text = await Deno.readTextFile(file).catch(() => "");
    if (file.endsWith(".sources")) lines.push(...fromStanzas(text, release));
    if (file.endsWith(".list")) lines.push(...fromLines(text, release));
  }
  return lines;
}

/** `deb [options] uri suite components` */
function fromLines(text: string, release: string): SourceLine[] {
  const matches = text.matchAll(/^deb\s+((?:\[.*?\]\s+)?\S+)\s+(\S+)\s+/gm);
  return [...matches].filter(([, , suite]) => suite === release)
    .map(([, start]) => (other) => `deb ${start} ${other} main`);
}

/** The newer format: paragraphs of `Field: value`. */
function fromStanzas(text: string, release: string): SourceLine[] {
  return text.split(/\n\s*\n/).flatMap((stanza) => {
    const field = (name: string) => stanza.match(new RegExp(`^${name}:[ \t]*(.+)$`, "mi"))?.[1];
    const uri = field("URIs")?.split(/\s+/)[0];
    if (!uri || !field("Suites")?.split(/\s+/).includes(release)) return [];
    const key = field("Signed-By");
    return [(other: string) => `deb ${key ? `[signed-by=${key}] ` : ""}${uri} ${other} main`];
  });
}
