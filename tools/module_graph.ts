// Lists the modules of a program. Deno needs no permission to read a file that an import names
// literally: `import key from "/etc/key" with { type: "text" }`. So before a program is bundled or
// started its modules are checked: each must belong to this project or to a package in node_modules.
// (Deno itself refuses such imports in packages.)
//
// It imports no package, because the launcher runs it.
import { fileURLToPath, pathToFileURL } from "node:url";
import * as services from "../services.ts";

const root = new URL("../", import.meta.url);
const rootFolders = [...Object.keys(services), "shared", "proto", "migrations", "tools"];
const code = /\.[cm]?[jt]sx?$/;
const content = /\.(css|svg|json|lua)$/; // embedded in pages, or sent to a server

interface Module {
  specifier: string;
  kind?: "esm" | "asserted" | "external" | "npm" | "node";
  error?: string;
  dependencies?: { code?: { specifier: string } }[];
}

/** A sentence for each module that must not be part of a program. */
export async function foreignModules(file: string, projectRoot: URL = root): Promise<string[]> {
  const { modules } = await graphOf(file, fileURLToPath(projectRoot));
  return modules.filter((module) => !isOurs(module, projectRoot)).map(({ specifier, error }) => {
    const importer = modules.find(({ dependencies = [] }) =>
      dependencies.some(({ code }) => code?.specifier === specifier)
    );
    return `${importer?.specifier ?? file} imports "${specifier}", ` +
      (error ?? "which is neither of this project nor of its packages");
  });
}

/** The packages that are loaded with a file. An `import type` loads nothing. */
export async function packagesOf(file: string): Promise<string[]> {
  const { modules, roots } = await graphOf(file, fileURLToPath(root));
  const importsOf = new Map(modules.map(({ specifier, dependencies = [] }) => [
    specifier,
    dependencies.flatMap(({ code }) => code?.specifier ?? []),
  ]));
  const loaded = new Set(roots);
  for (const url of loaded) for (const next of importsOf.get(url) ?? []) loaded.add(next);
  return [...loaded].filter((url) => url.startsWith("npm:"));
}

/** A module that Deno provides itself also counts: a bundle imports only these. */
export async function modulesBesideItself(file: string): Promise<string[]> {
  const { modules, roots } = await graphOf(file, undefined, ["--no-config", "--no-npm"]);
  return modules.filter(({ kind, specifier }) => kind !== "node" && !roots.includes(specifier))
    .map(({ specifier }) => specifier);
}

/** The modules of the project that a file imports itself, by their urls. */
export async function importsOf(file: string): Promise<string[]> {
  const { modules, roots } = await graphOf(file, fileURLToPath(root));
  const imported = modules.find(({ specifier }) => roots.includes(specifier))?.dependencies ?? [];
  return imported.flatMap(({ code }) => code?.specifier ?? []).filter((url) => isOurFile(url));
}

/**
 * The urls of a program's modules in the folder of its main file, besides that file. A .js file is a
 * script for browsers.
 */
export async function modulesBeside(file: string): Promise<string[]> {
  const { modules, roots } = await graphOf(file, fileURLToPath(root));
  const folder = new URL(".", pathToFileURL(file)).href;
  return modules.map(({ specifier }) => specifier)
    .filter((url) => url.startsWith(folder) && /\.tsx?$/.test(url) && !roots.includes(url));
}

function isOurs({ kind, specifier, error }: Module, projectRoot: URL): boolean {
  if (error !== undefined) return false;
  if (kind === "npm" || kind === "node") return true;
  return isOurFile(specifier, projectRoot);
}

/** A file of the project that may be part of a program: of its root only the list of services. */
export function isOurFile(url: string, projectRoot: URL = root): boolean {
  if (!url.startsWith(projectRoot.href)) return false;
  const path = url.slice(projectRoot.href.length);
  if (path === "services.ts") return true;
  const isThere = rootFolders.some((folder) => path.startsWith(`${folder}/`));
  return isThere && (code.test(path) || content.test(path));
}

async function graphOf(
  file: string,
  cwd: string | undefined,
  flags: string[] = [],
): Promise<{ modules: Module[]; roots: string[] }> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    // As a url: in a path Deno takes a percent sign, a "#" and a "?" for parts of one.
    args: ["info", "--json", "--no-remote", ...flags, pathToFileURL(file).href],
    ...(cwd === undefined ? {} : { cwd }),
  }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  return JSON.parse(new TextDecoder().decode(stdout));
}
