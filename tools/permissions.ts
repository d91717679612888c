// The permissions that a service needs follow from its settings: its own address, its database, its
// NATS servers, the issuer whose tokens it takes, the files with which servers prove who they are,
// the names of its own settings, and the host's name for the locked_by column.
import type { NatsServers } from "../shared/nats_connection.ts";
import { tlsFiles, type TlsSource } from "../shared/tls.ts";

interface Addresses {
  http: { hostname: string; port: number };
  databaseUrl: string;
  databaseTls: TlsSource;
  nats: Required<NatsServers>;
  access: { jwt: { jwksUrl: string } | undefined };
}

// Read by the PostgreSQL client on its own account; it shall find them unset.
const ignoredEnvironment = [
  ...["PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGPASSFILE", "PGDATABASE", "PGAPPNAME"],
  ...["PGOPTIONS", "PGBINARY", "PGSSLMODE", "PGSSLNEGOTIATION", "PGCLIENT_ENCODING"],
  ...["PGREPLICATION", "PGCONNECT_TIMEOUT", "NODE_PG_FORCE_NATIVE"],
  ...["USER", "USERNAME", "HOME", "APPDATA"],
];

export function permissionFlags(config: Addresses, environment: string[]): string[] {
  const { http, databaseUrl, databaseTls, nats, access } = config;
  const addresses = [
    `${bracketed(http.hostname)}:${http.port}`,
    addressOf(databaseUrl, 5432),
    ...nats.urls.split(",").map((url) => addressOf(url, 4222)),
    ...(access.jwt ? [webAddress(access.jwt.jwksUrl)] : []),
  ];
  const files = [databaseTls, nats.tls].flatMap(tlsFiles);
  return [
    `--allow-net=${[...new Set(addresses)].join()}`,
    ...(files.length > 0 ? [`--allow-read=${[...new Set(files)].join()}`] : []),
    `--allow-env=${environment.join()}`,
    `--ignore-env=${ignoredEnvironment.join()}`,
    "--allow-sys=hostname",
  ];
}

// An IPv6 address stands in a url with its brackets already.
function bracketed(hostname: string): string {
  return hostname.includes(":") ? `[${hostname}]` : hostname;
}

function webAddress(url: string): string {
  return addressOf(url, url.startsWith("https:") ? 443 : 80);
}

export function addressOf(url: string, defaultPort: number): string {
  const { hostname, port } = new URL(url);
  return `${hostname}:${port || defaultPort}`;
}
