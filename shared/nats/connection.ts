import { isIP } from "node:net";
import { connect, type ConnectionOptions, type NatsConnection } from "nats";
import { isEncryptedNats } from "../process/server_urls.ts";
import { tlsOptions, type TlsSource } from "../postgres/tls.ts";

// Where NATS is, and how it proves who it is.
export interface NatsServers {
  urls: string; // with commas between them
  tls?: TlsSource;
}

// Where answers are sent to. Each user of NATS may listen to its own only.
export function inboxesOf(name: string): string {
  return `_INBOX.${name}`;
}

// To any of the servers. One after the other, because the client library verifies the certificates of
// all by one name, and without one by "localhost".
export async function connectNats(
  servers: NatsServers,
  options: ConnectionOptions & { name: string },
): Promise<NatsConnection> {
  let failure: unknown;
  for (const url of shuffled(servers.urls.split(","))) {
    try {
      return await connect({
        ...options,
        inboxPrefix: inboxesOf(options.name),
        ...optionsFor(url, servers),
      });
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

function optionsFor(url: string, { urls, tls }: NatsServers): ConnectionOptions {
  const { protocol, host } = new URL(url);
  return {
    ...credentials(urls),
    // With a password in it, the client library takes a url for an IPv6 address and repeats it in its
    // complaint.
    servers: `${protocol}//${host}`,
    reconnect: false,
    resolve: false, // only the hosts named in the settings are permitted
    ignoreClusterUpdates: true,
    // Without, TLS is used if the server insists.
    ...(isEncryptedNats(urls) ? { tls: { ...nameIn(url), ...tlsOptions(tls) } } : {}),
  };
}

// The client reads no more than host and port from a url. The servers of a cluster share their
// accounts, so the first url speaks for all.
function credentials(urls: string): ConnectionOptions {
  const { username, password } = new URL(urls.split(",")[0] ?? "");
  const [user, pass] = [decodeURIComponent(username), decodeURIComponent(password)];
  return password ? { user, pass } : username ? { token: user } : {};
}

// What the certificate must be for. An address is no server name, and is compared as the host.
function nameIn(url: string): Record<string, unknown> {
  const host = new URL(url).hostname.replace(/^\[(.+)\]$/, "$1");
  return isIP(host) ? { host, servername: undefined } : { host, servername: host };
}

// So that clients spread over the servers.
function shuffled(urls: string[]): string[] {
  return urls.map((url) => ({ url, order: Math.random() }))
    .sort((one, other) => one.order - other.order)
    .map(({ url }) => url);
}
