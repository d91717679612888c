import { deniedHosts, firstAddress, lastAddress, readRange } from "../net/public_addresses.ts";
import type { Looks } from "../operators/looks.ts";

// The permissions of a program follow from its settings: its own address, the addresses of its
// servers, its certificate files, the names of its settings. Nothing here needs a package, because
// the launcher computes permissions before any sandbox exists (tools/run_service.ts).

export type Read = (name: string) => string | undefined;

/** The key of a setting, such as `nats.tls-ca`, in capitals, with `.` and `-` as `_`. */
export function environmentName(key: string): string {
  return key.toUpperCase().replaceAll(/[.-]/g, "_");
}

/** What `deno task dev` does with a service. */
interface Dev {
  /** Where the environment does not set them. */
  settings: Record<string, string>;
  /** These settings get the url of the service that each names. */
  urls?: Record<string, string>;
  /** What to look at first; the API description unless it is given. */
  page?: string;
  /** A command to try it out, when it listens at the url. */
  tryOut?: (url: string) => string;
}

/** What the tools know of a service. The names of its settings begin with its own name. */
export interface Service {
  name: string;
  /** It listens on this port unless NAME_HTTP_PORT says otherwise. */
  port: number;
  /** Its tables are in NAME_DATABASE_URL. It is ready when they have this version or a newer one. */
  database?: {
    schemaVersion: number;
    /** Whole numbers with their defaults for owner_settings.sql, which only `migrate` may write. */
    ownerSettings?: Record<string, string>;
  };
  usesNats?: boolean;
  usesRedis?: boolean;
  /** More settings that contain the url of a server. */
  servers?: readonly string[];
  /** It connects to any public address, and to those in this setting. It uses no server. */
  outside?: { alsoTo: string };
  /** The environment names of all its settings; `deno task services` writes them. */
  settings: readonly string[];
  /** What the names of its metrics begin with, if it is not its own name and `_`. */
  metricPrefix?: string;
  /** What operators see of it and can do with it. */
  looks?: Looks;
  dev?: Dev;
}

export interface Program {
  name: string;
  /** The environment names of all its settings. */
  settings: readonly string[];
  /** It listens on `prefix_HOST` and `prefix_PORT`, by default on this port of the loopback. */
  http?: { prefix: string; port: number };
  /** It connects to the servers in these settings. In each list the first that is set counts. */
  servers: readonly (readonly string[])[];
  /** It connects to any public address, and to those in the setting of this name. */
  outside?: { alsoTo: string };
  /** It reads the files in `prefix_TLS_CA`, `prefix_TLS_CERT` and `prefix_TLS_KEY`. */
  tls: readonly string[];
  /** It reads these folders, which are beside it. */
  folders?: readonly string[];
}

export function programOf(service: Service): Program {
  const { name, port, database, usesNats, usesRedis, servers = [], outside, settings } = service;
  const prefix = environmentName(name);
  const http = { prefix: `${prefix}_HTTP`, port };
  if (outside) return { name, settings, http, servers: [], tls: [], outside };
  return {
    name,
    settings,
    http,
    servers: [
      ...(database ? [[`${prefix}_DATABASE_URL`]] : []),
      ...(usesNats ? [["NATS_URL"]] : []),
      ...(usesRedis ? [["REDIS_URL"]] : []),
      ...["ACCESS_JWT_JWKS_URL", ...servers].map((setting) => [setting]),
    ],
    tls: [
      ...(database ? [`${prefix}_DATABASE`] : []),
      ...(usesNats ? ["NATS"] : []),
      ...(usesRedis ? ["REDIS"] : []),
    ],
  };
}

export interface Needs {
  net: string[];
  read: string[];
  /** Of a program that connects to any other address. */
  denied?: string[];
}

// The PostgreSQL client reads these variables by itself, so they must be hidden from it.
const ignoredEnvironment = [
  ...["PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGPASSFILE", "PGDATABASE", "PGAPPNAME"],
  ...["PGOPTIONS", "PGBINARY", "PGSSLMODE", "PGSSLNEGOTIATION", "PGCLIENT_ENCODING"],
  ...["PGREPLICATION", "PGCONNECT_TIMEOUT", "NODE_PG_FORCE_NATIVE"],
  ...["USER", "USERNAME", "HOME", "APPDATA"],
];

// The flags that do not depend on the settings.
export const fixedFlags = [`--ignore-env=${ignoredEnvironment.join()}`, "--allow-sys=hostname"];

/** The flags with which `deno run` gives the program what it needs, and no more. */
export function permissionFlags(program: Program, read: Read, folder: string): string[] {
  return [
    ...settingFlags(program, read, folder),
    `--allow-env=${program.settings.join()}`,
    ...fixedFlags,
  ];
}

/** Only the flags that depend on the values of the settings. */
export function settingFlags(program: Program, read: Read, folder: string): string[] {
  const needs = needsOf(program, read, folder);
  const mayReach = needs.net.length > 0 ? [`--allow-net=${needs.net.join()}`] : [];
  return [
    ...(needs.denied ? ["--allow-net", `--deny-net=${needs.denied.join()}`] : mayReach),
    ...(needs.read.length > 0 ? [`--allow-read=${needs.read.join()}`] : []),
  ];
}

// Skips values of which no permission can be made: the program reports them when it reads its
// settings, together with everything else that is wrong.
export function needsOf(
  { http, servers, tls, folders = [], outside }: Program,
  read: Read,
  folder: string,
): Needs {
  const urls = servers.flatMap((names) => firstSet(names, read)?.split(/,(?=\w+:\/\/)/) ?? []);
  const files = tls.flatMap((prefix) =>
    ["CA", "CERT", "KEY"].map((kind) => read(`${prefix}_TLS_${kind}`) ?? "")
  );
  const own = http ? [ownAddress(http, read)] : [];
  if (http && outside) return needsOutside({ http, outside }, own, read);
  return {
    net: unique([...own, ...urls.map(addressOf)].filter(isAddress)),
    read: unique([...folders.map((name) => `${folder}/${name}`), ...files.filter(isPath)]),
  };
}

// Deno asks after it has resolved a name, so a denied address can't be reached under any name. To
// listen on an address, the program must be allowed to connect to it as well; its own code refuses to.
function needsOutside(
  { http, outside }: Required<Pick<Program, "http" | "outside">>,
  own: string[],
  read: Read,
): Needs {
  const also = (read(outside.alsoTo) ?? "").split(",").map((range) => range.trim());
  const exceptions = [read(`${http.prefix}_HOST`) ?? "127.0.0.1", ...also]
    .flatMap((range) => readRange(range) ?? []);
  const ends = also.flatMap((range) => [firstAddress(range), lastAddress(range)]);
  const net = unique([...own.filter(isAddress), ...ends.filter((end) => end !== "")]);
  return { net, read: [], denied: deniedHosts(exceptions) };
}

/** The program was started with flags for other settings, or with none. */
export class MissingFlags extends Error {
  override readonly name = "MissingFlags";

  constructor({ name }: Program, flags: string[]) {
    super(
      `The settings need permissions that ${name} was not started with. ` +
        `Start it with ${flags.join(" ")} (docs/deploy.md, "What a process may do")`,
    );
  }
}

/** Reads the settings of this process. Throws MissingFlags when it may not use what they name. */
export function readWithin<Config>(
  program: Program,
  readConfig: (read: Read) => Config,
  read: Read,
  folder = "",
): Config {
  const { settings } = program;
  if (!settings.every((variable) => isGranted({ name: "env", variable }))) {
    throw new MissingFlags(program, [`--allow-env=${settings.join()}`]);
  }
  const config = readConfig(read);
  const needs = needsOf(program, read, folder);
  const mayRead = needs.read.every((path) => isGranted({ name: "read", path }));
  const mayReach = needs.net.every((host) => isGranted({ name: "net", host }));
  const mustNotReach = needs.denied ?? [];
  if (!mayRead || !mayReach || !mustNotReach.every(isDenied)) {
    throw new MissingFlags(program, settingFlags(program, read, folder));
  }
  return config;
}

function isGranted(permission: Deno.PermissionDescriptor): boolean {
  return Deno.permissions.querySync(permission).state === "granted";
}

// The two ends stand for the range.
function isDenied(range: string): boolean {
  return [firstAddress(range), lastAddress(range)].every((host) =>
    Deno.permissions.querySync({ name: "net", host }).state === "denied"
  );
}

function firstSet(names: readonly string[], read: Read): string | undefined {
  return names.map(read).find((value) => value !== undefined);
}

function ownAddress({ prefix, port }: { prefix: string; port: number }, read: Read): string {
  const host = read(`${prefix}_HOST`) ?? "127.0.0.1";
  const written = read(`${prefix}_PORT`) ?? `${port}`;
  // An IPv6 address has brackets in a permission, as in a url.
  return `${host.includes(":") ? `[${host}]` : host}:${Number(written)}`;
}

const defaultPorts: Record<string, number> = {
  "postgres:": 5432,
  "postgresql:": 5432,
  "nats:": 4222,
  "tls:": 4222,
  "redis:": 6379,
  "rediss:": 6379,
  "https:": 443,
  "http:": 80,
};

function addressOf(written: string): string {
  const url = URL.parse(written);
  return url ? `${url.hostname}:${url.port || defaultPorts[url.protocol]}` : "";
}

// A value must not add entries to a list of permissions.
function isAddress(address: string): boolean {
  return /^([\w.-]+|\[[\da-fA-F:.]+\]):\d{1,5}$/.test(address);
}

function isPath(value: string): boolean {
  return /^\/[^,\0]*$/.test(value) && !value.includes("-----BEGIN ");
}

function unique(values: string[]): string[] {
  return [...new Set(values)];
}
