import { relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import * as services from "../../services.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** The modules of other members that the files of a member may import. */
const imports: Record<string, readonly string[]> = {
  ...Object.fromEntries(Object.keys(services).map((service) => [service, ["shared", "proto"]])),
  // It calls the services over HTTP and knows of each what its program declares.
  ops: ["services.ts", "shared", "proto"],
  shared: ["proto"],
  proto: [],
  client: [], // it is published and used without the rest of the project
};

/** A file of a member. Files elsewhere (tests, tools, the root) are not bound to the layout. */
export interface MemberFile {
  /** The path from the root, with forward slashes: "shared/process/log.ts". */
  path: string;
  member: string;
  mayImport: readonly string[];
}

export function memberFile(filename: string): MemberFile | undefined {
  const path = pathFromRoot(filename);
  const member = topOf(path);
  const mayImport = imports[member];
  return mayImport && { path, member, mayImport };
}

/** The folder below the root that an import leads to; undefined for what is not ours. */
export function importedFolder(specifier: string, importer: MemberFile): string | undefined {
  return folderOfImport(specifier, root + importer.path);
}

/** The same for an importer of which only the file name is known. */
export function folderOfImport(specifier: string, importer: string): string | undefined {
  const byName = /^@kenri\/([^/]+)/.exec(specifier)?.[1];
  if (byName !== undefined) return byName;
  if (!isRelative(specifier)) return undefined;
  return folderOf(fileURLToPath(new URL(specifier, pathToFileURL(importer))));
}

/** The folder below the root that the file is in. */
export function folderOf(filename: string): string {
  return topOf(pathFromRoot(filename));
}

export function isRelative(specifier: string): boolean {
  return /^(\.{1,2}\/|\/|file:)/.test(specifier);
}

/** The path has forward slashes; outside of the root it begins with "..". */
function pathFromRoot(path: string): string {
  return relative(root, path).replaceAll("\\", "/");
}

function topOf(path: string): string {
  return path.split("/", 1)[0] ?? path;
}
