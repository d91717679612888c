// deno task services: writes what follows from services.ts, from the schemas of the settings and from
// the migrations: the tasks, the parts of the image, and what the launcher must know without the
// packages that the schemas are made with. With --check it only reports what is not up to date.
import type { z } from "zod";
import { environmentName, type Service } from "../shared/process/program.ts";
import { root } from "./root.ts";

const isCheck = Deno.args.includes("--check");
const mark = "// Written by `deno task services`; do not edit.";

// The lists of services. Those of the tests only get what their descriptors import.
const lists = ["services.ts", "tests/services.ts"];

// The descriptor of a new service imports a file that does not exist yet, so nothing that reads a list
// may be loaded before this.
for (const list of lists) {
  for (const folder of foldersIn(list, await textOf(root + list))) {
    const file = `${root}${folder}/derived.ts`;
    if (await textOf(file) === "") await Deno.writeTextFile(file, derivedWith([], 0));
  }
}

const listed: Record<string, Service> = await import("../services.ts");
const services = Object.values(listed);
refuseWrong(listed);
await write("tools/provision/services.ts", provisionedServices());
const settings: string[] = [];
for (const list of lists) {
  for (const folder of foldersIn(list, await textOf(root + list))) {
    const { schema } = await import(`../${folder}/config.ts`);
    const { program }: { program: Service } = await import(`../${folder}/program.ts`);
    const version = program.database && await newestMigration(folder);
    await write(`${folder}/derived.ts`, derivedWith(namesIn(schema), version));
    if (services.includes(program)) settings.push(...namesIn(schema));
  }
}
const { schema } = await import("./provision/config.ts");
await write("tools/provision/setting_names.ts", `${mark}\n${settingsLine(namesIn(schema))}`);
for (const { name } of services) {
  const member = { name: `@kenri/${name}`, version: "0.1.0", exports: {} };
  await change(`${name}/deno.json`, (text) => text || `${JSON.stringify(member, null, 2)}\n`);
}
await change("deno.json", (text) => withTasks(withMembers(text)));
await change("Dockerfile", (text) => withEnvironment(withFolders(text)));
await change(".dockerignore", (text) => {
  const lines = services.map(({ name }) => `!${name}\n`).join("");
  return text.replace(/(?<=^!services\.ts\n)(!\w+\n)*(?=!shared\n)/m, lines);
});

/** Folder, name and line are the same word, because names of settings and files are made of it. */
function refuseWrong(listed: Record<string, Service>): void {
  for (const [name, service] of Object.entries(listed)) {
    if (service.name !== name) {
      throw new Error(`The service "${name}" has the name "${service.name}" in its program.ts`);
    }
    const other = services.find(({ port }) => port === service.port);
    if (other !== service) {
      throw new Error(
        `${other?.name} and ${name} have the same port: choose another in program.ts`,
      );
    }
  }
}

function foldersIn(list: string, text: string): string[] {
  const lines = text.matchAll(/^export .* from "\.\/(\w+)\/program\.ts";$/gm);
  return [...lines].map(([, folder]) => list.replace("services.ts", `${folder}`));
}

function derivedWith(settings: string[], schemaVersion: number | undefined): string {
  const version = `\n/** The newest file in migrations/. */\n` +
    `export const schemaVersion = ${schemaVersion};\n`;
  return `${mark}\n${settingsLine(settings)}${schemaVersion === undefined ? "" : version}`;
}

function settingsLine(names: string[]): string {
  const lines = names.map((name) => `  "${name}",\n`).join("");
  return `export const settings: readonly string[] = [${lines && `\n${lines}`}];\n`;
}

function namesIn(schema: z.ZodObject): string[] {
  return Object.keys(schema.shape).map(environmentName).sort();
}

async function newestMigration(folder: string): Promise<number> {
  const files = await Array.fromAsync(Deno.readDir(`${root}${folder}/migrations`));
  return Math.max(0, ...files.map(({ name }) => Number(/^\d{4}(?=_)/.exec(name)?.[0] ?? 0)));
}

// A bundle contains only what is imported by a literal name.
function provisionedServices(): string {
  const names = services.filter(({ usesNats }) => usesNats).map(({ name }) => name);
  return [
    mark,
    ...names.map((name) => `import * as ${name} from "../../${name}/stream_settings.ts";`),
    "",
    `export const streams = { ${names.join(", ")} };\n`,
  ].join("\n");
}

function withMembers(text: string): string {
  const members = [...services.map(({ name }) => name), "shared", "proto", "ops", "client"];
  const lines = members.map((name) => `\n    "./${name}"`).join();
  return text.replace(/(?<=^ {2}"workspace": \[)[^\]]*/m, `${lines}\n  `);
}

/** All tasks of services are the same but for the name, so the first is the pattern. */
function withTasks(text: string): string {
  const task = /^ {4}"(\w+)": "deno run .* tools\/run_service\.ts \1",\n/gm;
  const [pattern = "", name = ""] = task.exec(text) ?? [];
  const isService = (name: string) => services.some((service) => service.name === name);
  const kept = text.replaceAll(task, (line, name) => isService(name) ? "" : line);
  const lines = services.map((service) => pattern.replaceAll(name, service.name)).join("");
  return kept.replace(/^ {4}"migrate": /m, `${lines}$&`);
}

function withFolders(text: string): string {
  const lines = services.map(({ name }) => `COPY ${name} ${name}\n`).join("");
  const members = services.map(({ name }) => `COPY ${name}/deno.json ${name}/\n`).join("");
  return text.replace(/(?<=^COPY services\.ts \.\/\n)(COPY (\w+) \2\n)*(?=COPY shared )/m, lines)
    .replace(/(?<=^COPY deno\.json .*\n)(COPY .*\n)*(?=COPY shared\/deno\.json )/m, members)
    .replace(/^EXPOSE .*/m, `EXPOSE ${services.map(({ port }) => port).join(" ")}`);
}

// The flag of the image can't depend on the program, so it has the beginnings of all names.
function withEnvironment(text: string): string {
  const beginnings = [...settings, ...namesIn(schema)].map((name) => name.replace(/_.*/, "_*"));
  const names = [...new Set(beginnings)].sort().join();
  return text.replace(/(?<="--allow-env=)[^"]*/, names);
}

async function change(file: string, edit: (text: string) => string): Promise<void> {
  await write(file, edit(await textOf(root + file)));
}

async function write(file: string, text: string): Promise<void> {
  if (await textOf(root + file) === text) return;
  // A file is replaced and not changed, because the other name of a hard link may be a file elsewhere.
  if (!isCheck) {
    await Deno.writeTextFile(`${root}${file}.new`, text);
    return await Deno.rename(`${root}${file}.new`, root + file);
  }
  console.error(`${file} is not up to date: run "deno task services"`);
  Deno.exitCode = 1;
}

async function textOf(file: string): Promise<string> {
  try {
    return await Deno.readTextFile(file);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return "";
    throw error;
  }
}
