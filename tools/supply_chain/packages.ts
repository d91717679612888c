// All packages of all lock files.
import { fileURLToPath } from "node:url";

export interface Package {
  name: string;
  version: string;
  integrity: string;
  dependencies: string[]; // ids
  locks: string[];
  hasScripts: boolean; // scripts that would run when it is installed
}

export interface Lock {
  version: string;
  specifiers: Record<string, string>;
  npm: Record<string, LockedPackage>;
  workspace?: unknown;
}

interface LockedPackage {
  integrity: string;
  dependencies?: string[];
  optionalDependencies?: string[];
  scripts?: boolean;
}

/** The lock files of the product with its tests, and of tools with packages of their own. */
export const lockFiles = [
  "deno.lock",
  ...["docker", "issuer/provider", "kubernetes", "peers/libraries"].map((folder) =>
    `tools/${folder}/deno.lock`
  ),
];

const root = new URL("../../", import.meta.url);
export const pathOf = (file: string): string => fileURLToPath(new URL(file, root));

export async function readLock(file: string): Promise<Lock> {
  return JSON.parse(await Deno.readTextFile(pathOf(file)));
}

/** Each name@version once, however often and with whatever peers a lock lists it. */
export async function readPackages(files: string[] = lockFiles): Promise<Map<string, Package>> {
  const packages = new Map<string, Package>();
  for (const file of files) {
    const { npm } = await readLock(file);
    const idsByName = Map.groupBy(Object.keys(npm).map(idOf), nameOf);
    for (const [key, locked] of Object.entries(npm)) {
      const id = idOf(key);
      const { integrity, dependencies = [], optionalDependencies = [], scripts = false } = locked;
      const needed = [...dependencies, ...optionalDependencies].flatMap((dependency) =>
        isWithVersion(dependency) ? [idOf(dependency)] : idsByName.get(dependency) ?? []
      );
      const known = packages.get(id);
      packages.set(id, {
        name: nameOf(id),
        version: id.slice(nameOf(id).length + 1),
        integrity,
        dependencies: [...new Set([...known?.dependencies ?? [], ...needed])].sort(),
        locks: [...new Set([...known?.locks ?? [], file])],
        hasScripts: scripts,
      });
    }
  }
  return new Map([...packages].sort(([a], [b]) => a < b ? -1 : 1));
}

/** Removes the peers that a lock writes after it, a@1_b@2, and the alias before it, a@npm:b@2. */
export function idOf(key: string): string {
  return key.replace(/^.+@npm:/, "").replace(/^(@?[^@]+@[^_]+).*$/, "$1");
}

function nameOf(id: string): string {
  return id.slice(0, id.lastIndexOf("@"));
}

function isWithVersion(dependency: string): boolean {
  return dependency.indexOf("@", 1) > 0;
}
