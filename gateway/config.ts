import { isLoopback } from "@kenri/shared/access/loopback.ts";
import {
  nats,
  type NatsConfig,
  service,
  type ServiceConfig,
} from "@kenri/shared/process/service_settings.ts";
import {
  duration,
  encryptionKeys,
  number,
  secretKeys,
  serverUrl,
  serverUrls,
  text,
} from "@kenri/shared/process/setting_kinds.ts";
import { environment, notAbove, parseSettings, prefixed } from "@kenri/shared/process/settings.ts";
import { z } from "zod";
import { program } from "./program.ts";
import { feedOf, type FeedOptions, streamSettings } from "./stream_settings.ts";

const dependencySettings = (what: string) => ({
  "url": origin().optional().describe(`\`http://host:port\` of the ${what} service`),
  "token": secretKeys().optional().describe(`The gateway's token for the ${what} service`),
});

export const schema = z.object({
  ...prefixed("gateway", {
    "public-url": publicUrl().describe(
      "Where browsers reach the gateway: `https://host`; `http://` only on the loopback",
    ),
    "issuer": issuerUrl().describe("The OpenID provider, as its tokens name it"),
    "issuer-servers": serverUrls("https:", "http:").optional().describe(
      "Further servers of the issuer, such as that of its token endpoint, separated by commas",
    ),
    "client-id": text().describe("The gateway's name at the issuer"),
    "client-secret": text().optional().describe("Its secret there; without it, only PKCE"),
    "session.keys": encryptionKeys().describe(
      "32 random bytes, base64url: seals the sessions. To rotate it, give all replicas `old,new` and then `new,old`; the old key is needed as long as a session lasts",
    ),
    "session.idle": duration().prefault("12h").describe(
      "How long a session lasts without a request",
    ),
    "session.ttl": duration(365 * 86_400_000).prefault("7d").describe(
      "How long a session lasts at most",
    ),
    "session.staleness": duration().prefault("5s").describe(
      "How old the events of accounts may be before each request asks the account service; under `4s` it nearly always asks",
    ),
    ...prefixed("account", {
      ...dependencySettings("account"),
      "url": origin().describe("`http://host:port` of the account service"),
    }),
    ...prefixed("entitlement", dependencySettings("entitlement")),
    ...prefixed("notification", dependencySettings("notification")),
    ...prefixed("matchmaking", {
      ...dependencySettings("matchmaking"),
      "modes": modes().prefault("casual,rank").describe(
        "The modes that the page offers, separated by commas: those of `matchmaking.modes`",
      ),
    }),
    "rate.login": number({ min: 1, max: 1_000_000 }).prefault("10").describe(
      "Logins per minute from one address",
    ),
    "rate.user": number({ min: 1, max: 1_000_000 }).prefault("50").describe(
      "Requests per second of one user",
    ),
    "rate.user-burst": number({ min: 1, max: 1_000_000 }).prefault("100").describe(
      "Requests of one user at once",
    ),
    "trusted-proxies": number({ min: 0, max: 100 }).prefault("0").describe(
      "How many proxies are in front of it, whose entries in `X-Forwarded-For` are believed",
    ),
  }),
  ...streamSettings,
  ...nats.settings(),
  ...service.settings("gateway", program.port),
}).check(
  ...nats.checks(),
  ...service.checks("gateway"),
  notAbove("gateway.session.idle", "gateway.session.ttl"),
);

export interface DependencyOptions {
  url: string | undefined;
  token: string | undefined;
}

export interface SessionOptions {
  keys: Uint8Array[]; // the first seals, all of them open
  idleMs: number;
  ttlMs: number;
  stalenessMs: number;
}

export interface IssuerOptions {
  url: string;
  clientId: string;
  clientSecret: string | undefined;
}

export interface RateLimits {
  loginPerMinute: number;
  userPerSecond: number;
  userBurst: number;
}

export interface Config extends ServiceConfig, NatsConfig {
  publicUrl: string; // without a slash at the end
  issuer: IssuerOptions;
  session: SessionOptions;
  account: DependencyOptions & { url: string };
  entitlement: DependencyOptions;
  notification: DependencyOptions;
  matchmaking: DependencyOptions;
  modes: string[]; // that the page offers; none without matchmaking
  limits: RateLimits;
  trustedProxies: number;
  feed: FeedOptions;
}

export function readConfig(read: (name: string) => string | undefined = environment): Config {
  const settings = parseSettings(schema, read);
  const dependency = (name: "entitlement" | "notification" | "matchmaking") => ({
    url: settings[`gateway.${name}.url`],
    token: settings[`gateway.${name}.token`]?.[0],
  });
  return {
    ...service.config("gateway", settings),
    ...nats.config(settings),
    publicUrl: settings["gateway.public-url"],
    issuer: {
      url: settings["gateway.issuer"],
      clientId: settings["gateway.client-id"],
      clientSecret: settings["gateway.client-secret"],
    },
    session: {
      keys: settings["gateway.session.keys"],
      idleMs: settings["gateway.session.idle"],
      ttlMs: settings["gateway.session.ttl"],
      stalenessMs: settings["gateway.session.staleness"],
    },
    account: {
      url: settings["gateway.account.url"],
      token: settings["gateway.account.token"]?.[0],
    },
    entitlement: dependency("entitlement"),
    notification: dependency("notification"),
    matchmaking: dependency("matchmaking"),
    modes: settings["gateway.matchmaking.url"] ? settings["gateway.matchmaking.modes"] : [],
    limits: {
      loginPerMinute: settings["gateway.rate.login"],
      userPerSecond: settings["gateway.rate.user"],
      userBurst: settings["gateway.rate.user-burst"],
    },
    trustedProxies: settings["gateway.trusted-proxies"],
    feed: feedOf(settings),
  };
}

function isOnLoopback(url: string): boolean {
  return isLoopback(URL.parse(url)?.hostname.replace(/^\[|\]$/g, "") ?? "");
}

function modes(): z.ZodPipe<z.ZodString, z.ZodTransform<string[], string>> {
  return text().transform((written, context) => {
    const names = written.split(",").map((name) => name.trim());
    const isList = names.every((name) => /^[\w.-]{1,64}$/.test(name));
    if (isList && new Set(names).size === names.length) return names;
    context.addIssue("must be different names of letters, digits, _ . and -, separated by commas");
    return z.NEVER;
  });
}

// An address without path, user and query.
function origin(): z.ZodPipe<z.ZodString, z.ZodTransform<string, string>> {
  return serverUrl("https:", "http:").transform((value, context) => {
    const { origin, href } = new URL(value);
    if (href === `${origin}/`) return origin;
    context.addIssue("must be only scheme, host and port");
    return z.NEVER;
  });
}

function publicUrl(): z.ZodPipe<z.ZodString, z.ZodTransform<string, string>> {
  return serverUrl("https:", "http:").transform((value, context) => {
    const { origin, href, protocol } = new URL(value);
    if (href !== `${origin}/`) context.addIssue("must be only scheme, host and port");
    else if (protocol === "http:" && !isOnLoopback(value)) {
      context.addIssue("must begin with https:// unless its host is this machine");
    } else return origin;
    return z.NEVER;
  });
}

function issuerUrl(): z.ZodString {
  return serverUrl("https:", "http:").refine(
    (value) => value.startsWith("https:") || isOnLoopback(value),
    "must begin with https:// unless its host is this machine",
  ).refine(
    (value) => !/[@?#]/.test(value),
    "must have no user, query or fragment",
  );
}
