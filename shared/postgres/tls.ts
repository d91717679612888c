import { z } from "zod";
import { environmentName } from "../process/program.ts";
import { SettingsError } from "../process/settings.ts";
import { text } from "../process/setting_kinds.ts";
import { isEncryptedDatabase, isEncryptedNats, isEncryptedRedis } from "../process/server_urls.ts";

// The certificates by which a server is verified, and by which it verifies us. The URL decides
// whether a connection is encrypted; if it is, the server's certificate and host name are always
// verified.

export const tlsSettings = {
  "tls-ca": pemOrPath("CERTIFICATE").optional().describe(
    "Authority that signed the server's certificate, see [TLS](#tls)",
  ),
  "tls-cert": pemOrPath("CERTIFICATE").optional().describe(
    "Client certificate, for a server that requires one",
  ),
  "tls-key": pemOrPath("PRIVATE KEY").optional().describe("Private key of the client certificate"),
};

type Name = "ca" | "cert" | "key";
const names: Name[] = ["ca", "cert", "key"];

// Each is PEM text or the path of a PEM file.
export interface TlsSource {
  setting: string; // the prefix of these settings
  ca?: string | undefined; // authorities to trust instead of the public ones
  cert?: string | undefined; // client certificate, for a server that requires one
  key?: string | undefined;
}

export function tlsSource<Setting extends string>(
  setting: Setting,
  settings: { [Key in `${Setting}.tls-${Name}`]?: string | undefined },
): TlsSource {
  return {
    setting,
    ca: settings[`${setting}.tls-ca`],
    cert: settings[`${setting}.tls-cert`],
    key: settings[`${setting}.tls-key`],
  };
}

type Check = z.core.$ZodCheck<Record<string, unknown>>;

// A TLS setting without effect is an error, because it would give a false sense of security.
export function databaseTlsIsUsed(setting: string): Check[] {
  return tlsIsUsed(setting, "?sslmode=verify-full", isEncryptedDatabase);
}

export function natsTlsIsUsed(url = "nats.url"): Check[] {
  return tlsIsUsed("nats", "tls://", isEncryptedNats, url);
}

export function redisTlsIsUsed(): Check[] {
  return tlsIsUsed("redis", "rediss://", isEncryptedRedis);
}

function tlsIsUsed(
  setting: string,
  how: string,
  isEncrypted: (url: string) => boolean,
  urlSetting = `${setting}.url`,
): Check[] {
  const needs = (name: Name, what: string, isThere: (values: Record<string, unknown>) => boolean) =>
    z.refine<Record<string, unknown>>(
      (values) => values[`${setting}.tls-${name}`] === undefined || isThere(values),
      { path: [`${setting}.tls-${name}`], message: `needs ${what}`, when: () => true },
    );
  const nameOf = (name: string) => environmentName(`${setting}.${name}`);
  const urlName = environmentName(urlSetting);
  const encryption = ({ [urlSetting]: url }: Record<string, unknown>) =>
    typeof url !== "string" || isEncrypted(url);
  return [
    needs("ca", `${how} in ${urlName}`, encryption),
    needs("cert", `${how} in ${urlName}`, encryption),
    needs("cert", nameOf("tls-key"), (values) => values[`${setting}.tls-key`] !== undefined),
    needs("key", nameOf("tls-cert"), (values) => values[`${setting}.tls-cert`] !== undefined),
  ];
}

// Options for any number of connections. Files are read again for each connection, so replaced
// files need no restart. If a file can't be read, its last content is used, because an error here
// would end the process in the PostgreSQL client.
export function tlsOptions(source: TlsSource = { setting: "" }): { [N in Name]?: string } {
  const options = {};
  for (const name of names) {
    const given = source[name];
    if (given === undefined) continue;
    let last = readPem(given);
    if (last === undefined) {
      const setting = environmentName(`${source.setting}.tls-${name}`);
      throw new SettingsError([`${setting} names a file that can't be read or is not PEM`]);
    }
    const get = () => last = readPem(given) ?? last;
    Object.defineProperty(options, name, { get, enumerable: true, configurable: true });
  }
  return options;
}

function readPem(pemOrPath: string): string | undefined {
  if (isPem(pemOrPath)) return pemOrPath;
  try {
    const pem = Deno.readTextFileSync(pemOrPath);
    return isPem(pem) ? pem : undefined;
  } catch {
    return undefined;
  }
}

function isPem(value: string): boolean {
  return value.includes("-----BEGIN ");
}

// A permission is made from the path, so it must be absolute and without commas.
function pemOrPath(kind: string): z.ZodString {
  return text().refine(
    (value) => isPem(value) ? value.includes(`${kind}-----`) : /^\/[^,\0]*$/.test(value),
    `must be a ${kind.toLowerCase()} as PEM text, or an absolute path without commas`,
  );
}

// A retry does not help: one side needs another certificate.
export function isDistrust(error: unknown): boolean {
  return error instanceof Error && "code" in error && /CERT|SIGNATURE/.test(String(error.code));
}
