import { isIP } from "node:net";
import { connect, type ConnectionOptions, type NatsConnection } from "nats";
import { isEncryptedNats } from "../process/server_urls.ts";
import { tlsOptions, type TlsSource } from "../postgres/tls.ts";

export interface NatsServers {
  urls: string; // separated by commas
  tls?: TlsSource;
}

// The prefix of the subjects for replies. Each user of NATS may subscribe only to its own.
export function inboxesOf(name: string): string {
  return `_INBOX.${name}`;
}

// The answers to the requests of a service arrive here, apart from the acknowledgements of a stream:
// whoever may answer its requests must not be able to forge acknowledgements.
export function inboxOfAnswers(name: string): string {
  return inboxesOf(`${name}.checks`);
}

// Connects to any of the servers. It tries one after the other, because the client library would
// verify the certificates of all servers with one name.
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
    // The client library would take a URL with a password for an IPv6 address and repeat it in its
    // error.
    servers: `${protocol}//${host}`,
    reconnect: false,
    resolve: false, // there is permission only for the hosts in the settings
    ignoreClusterUpdates: true,
    // Without this, the client would use TLS if the server demanded it.
    ...(isEncryptedNats(urls) ? { tls: { ...nameIn(url), ...tlsOptions(tls) } } : {}),
  };
}

// The client library reads only host and port from a URL. The servers of a cluster share their
// accounts, so the first URL has the credentials for all.
function credentials(urls: string): ConnectionOptions {
  const { username, password } = new URL(urls.split(",")[0] ?? "");
  const [user, pass] = [decodeURIComponent(username), decodeURIComponent(password)];
  return password ? { user, pass } : username ? { token: user } : {};
}

// The name that the certificate must have. An address is compared as the host, not as a server
// name.
function nameIn(url: string): Record<string, unknown> {
  const host = new URL(url).hostname.replace(/^\[(.+)\]$/, "$1");
  return isIP(host) ? { host, servername: undefined } : { host, servername: host };
}

// Spreads the clients over the servers.
function shuffled(urls: string[]): string[] {
  return urls.map((url) => ({ url, order: Math.random() }))
    .sort((one, other) => one.order - other.order)
    .map(({ url }) => url);
}
