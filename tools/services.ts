// The programs, and the arguments with which `deno run` starts each with exactly the permissions
// that follow from its settings. It imports no package: the launcher runs it before any sandbox
// exists.
import { fileURLToPath } from "node:url";
import { program as migrate } from "../migrations/program.ts";
import * as services from "../services.ts";
import {
  permissionFlags,
  type Program,
  programOf,
  type Read,
  type Service,
} from "../shared/process/program.ts";
import { program as provision } from "./provision/program.ts";

const root = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");

interface Start {
  program: Program;
  main: string; // from the root of the project
  isService: boolean;
}

export type ServiceName = keyof typeof services;
export type ProgramName = ServiceName | "migrate" | "provision";

export const serviceNames = Object.keys(services) as ServiceName[];

export const programs = {
  ...Object.fromEntries(serviceNames.map((name) => [name, startOf(services[name])])) as Record<
    ServiceName,
    Start
  >,
  migrate: { program: migrate, main: "migrations/migrate.ts", isService: false },
  provision: { program: provision, main: "tools/provision/provision.ts", isService: false },
} satisfies Record<ProgramName, Start>;

/** How a service in this folder is started. */
export function startOf(service: Service, folder: string = service.name): Start {
  return { program: programOf(service), main: `${folder}/main.ts`, isService: true };
}

export function isProgramName(name: string | undefined): name is ProgramName {
  return name !== undefined && Object.hasOwn(programs, name);
}

/** The permissions that the service needs with these settings, and no others. */
export function servicePermissions(name: ServiceName, read: Read): string[] {
  return permissionFlags(programs[name].program, read, "");
}

// Most of what a batch allocates is garbage when the batch is done. In a young generation that is
// larger than a few batches it dies before it is copied. The old one may grow by 70 percent before it is
// collected, because each collection delays requests by milliseconds; its bound keeps the process below
// 512 MiB.
export const v8Flags =
  "--v8-flags=--min-semi-space-size=8,--max-semi-space-size=8,--max-old-space-size=320,--heap-growing-percent=70";

/** The arguments that run a program from its sources. */
export function runArguments(name: ProgramName, read: Read): string[] {
  return argumentsOf(programs[name], read);
}

/** The same for a program that is not listed. */
export function argumentsOf({ program, main, isService }: Start, read: Read): string[] {
  const file = `${root}/${main}`;
  const attached = fileURLToPath(new URL("attached.ts", import.meta.url));
  return [
    ...["run", "--cached-only", "--no-remote", "--no-prompt"],
    ...(isService ? [v8Flags, `--preload=${attached}`] : []),
    ...permissionFlags(program, read, root),
    file,
  ];
}

export function mainFile(name: ProgramName): string {
  return `${root}/${programs[name].main}`;
}

// As in deno.json. With the second one, the signal of a request says that the caller has gone, and
// nothing else.
export const unstableFlags = ["--unstable-cron", "--unstable-no-legacy-abort"];

// A bundle is self-contained: it uses no deno.json, which would set the unstable flags, and loads no
// modules.
export const bundleFlags = [
  "--no-config",
  "--no-remote",
  "--no-npm",
  "--cached-only",
  "--no-prompt",
  ...unstableFlags,
  v8Flags,
];

export function bundleArguments(name: ProgramName, read: Read, folder: string): string[] {
  const flags = permissionFlags(programs[name].program, read, folder);
  return ["run", ...bundleFlags, ...flags, `${folder}/${name}.js`];
}
