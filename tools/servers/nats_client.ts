import { connect, type ConnectionOptions, type NatsConnection } from "nats";

/** The client reads no more than host and port from a url, so user and password are taken out of it. */
export function connectTo(urls: string, options: ConnectionOptions = {}): Promise<NatsConnection> {
  const all = urls.split(",").map((url) => new URL(url));
  const [user = "", pass = ""] = [all[0]?.username, all[0]?.password]
    .map((part) => decodeURIComponent(part ?? ""));
  const account = user === "" ? {} : { user, pass };
  return connect({ ...options, ...account, servers: all.map(({ host }) => host) });
}
