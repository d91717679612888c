import { pathToFileURL } from "node:url";

const root = new URL("../../", import.meta.url).href;

/** What the files of a member may import of ours, besides their own member. */
const imports: Record<string, readonly string[]> = {
  entitlement: ["shared", "proto"],
  notification: ["shared", "proto"],
  shared: ["proto"],
  proto: [],
  client: [], // it is used where nothing of ours is
};

/** A file of a member. Files elsewhere (tests, tools, the root) are not bound to the layout. */
export interface MemberFile {
  /** From the root, with forward slashes: "shared/log.ts". */
  path: string;
  member: string;
  mayImport: readonly string[];
}

export function memberFile(filename: string): MemberFile | undefined {
  const path = pathFromRoot(pathToFileURL(filename));
  const member = topOf(path);
  const mayImport = imports[member];
  return mayImport && { path, member, mayImport };
}

/** The folder below the root that an import leads to; undefined for what is not ours. */
export function importedFolder(specifier: string, importer: MemberFile): string | undefined {
  const byName = /^@kenri\/([^/]+)/.exec(specifier)?.[1];
  if (byName !== undefined) return byName;
  if (!isRelative(specifier)) return undefined;
  return topOf(pathFromRoot(new URL(specifier, root + importer.path)));
}

export function isRelative(specifier: string): boolean {
  return /^(\.{1,2}\/|\/|file:)/.test(specifier);
}

function pathFromRoot(url: URL): string {
  return url.href.startsWith(root) ? url.href.slice(root.length) : `../${url.pathname}`;
}

function topOf(path: string): string {
  return path.split("/", 1)[0] ?? path;
}
