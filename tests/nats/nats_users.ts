// A NATS server with the users of deploy/nats-users.conf, and a url for each of them.
import type { ConsumerConfig, NatsConnection, StreamConfig } from "nats";
import { connectNats } from "../../shared/nats/connection.ts";
import { type ProvisionConfig, readConfig } from "../../tools/provision/config.ts";
import { provision } from "../../tools/provision/provision.ts";
import { type NatsServer, startNats } from "../../tools/servers/nats.ts";
import type { BothPlaces } from "../../tools/load/stage.ts";
import {
  type ServiceProcess,
  type Settings,
  startService,
} from "../../tools/servers/service_process.ts";
import type { ServiceName } from "../../tools/services.ts";

export type User =
  | "account"
  | "entitlement"
  | "gateway"
  | "matchmaking"
  | "notification"
  | "provision"
  | "operator";

const file = await Deno.readTextFile(new URL("../../deploy/nats-users.conf", import.meta.url));

/** `change` may replace permissions of the file. */
export function startGuardedNats(change = (users: string) => users): Promise<NatsServer> {
  // The server is started with an empty environment, so the passwords are in the text.
  return startNats({ users: change(file).replaceAll(/\$(\w+)_NATS_PASSWORD/g, '"$1 secret"') });
}

export function urlFor(user: User, { port }: NatsServer): string {
  return `nats://${user}:${user.toUpperCase()}%20secret@localhost:${port}`;
}

/** The names that the file contains. */
export const names = {
  stream: "entitlement-events",
  subject: "entitlement.events",
  pointsSubject: "points.events",
  durable: "notification-entitlement-consumer",
  accountStream: "account-events",
  accountSubject: "account.events",
  matchmakingStream: "matchmaking-events",
  matchmakingSubject: "matchmaking.events",
  matchmakingDurable: "notification-matchmaking-consumer",
};

export const nameSettings: Settings = {
  ENTITLEMENT_NATS_STREAM: names.stream,
  ENTITLEMENT_NATS_SUBJECT: names.subject,
  ENTITLEMENT_POINTS_SUBJECT: names.pointsSubject,
  NOTIFICATION_NATS_STREAM: names.stream,
  NOTIFICATION_NATS_SUBJECT: names.subject,
  NOTIFICATION_NATS_POINTS_SUBJECT: names.pointsSubject,
  NOTIFICATION_NATS_DURABLE: names.durable,
  NOTIFICATION_MATCHMAKING_ENABLED: "true",
};

export async function withUser<Result>(
  user: User,
  server: NatsServer,
  work: (connection: NatsConnection) => Promise<Result>,
): Promise<Result> {
  const connection = await connectNats({ urls: urlFor(user, server) }, { name: user });
  try {
    return await work(connection);
  } finally {
    await connection.close();
  }
}

/** A replica with the user and the names of the file. */
export function startWithUser(
  service: Extract<ServiceName, User>,
  place: BothPlaces,
  nats: NatsServer,
  more: Settings = {},
): Promise<ServiceProcess> {
  const names = { ...nameSettings, NATS_URL: urlFor(service, nats) };
  return startService(service, { ...place.settings, ...names, ...more });
}

/** The streams and consumers as `deno task provision` makes them. */
export function provisionOn(server: NatsServer, user: User = "provision"): Promise<void> {
  return provision(provisionConfig({ ...nameSettings, NATS_URL: urlFor(user, server) }), () => {});
}

export const provisionConfig = (settings: Settings): ProvisionConfig =>
  readConfig((name) => settings[name]);

/** The settings of all streams and of their consumers. */
export function infoOf(
  nats: NatsServer,
): Promise<{ config: StreamConfig; created: string; consumers: ConsumerConfig[] }[]> {
  return withUser("operator", nats, async (connection) => {
    const { streams, consumers } = await connection.jetstreamManager();
    const found = await streams.list().next();
    return await Promise.all(found.map(async ({ config, created }) => ({
      config,
      created,
      consumers: (await consumers.list(config.name).next()).map(({ config }) => config),
    })));
  });
}
