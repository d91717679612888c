import { z } from "zod";
import { serverUrl, serverUrls } from "./setting_kinds.ts";

// The URL of a server also decides whether the connection is encrypted. If it is, the server is
// always verified.

// Other parameters are refused: the client library would take a host, a port, a password or files
// from them, for which there is no permission, and some modes encrypt without verifying the server.
export function databaseUrl(): z.ZodString {
  return serverUrl("postgres:", "postgresql:").refine(
    (value) => /^[^?]*(\?sslmode=(disable|verify-full))?$/.test(value),
    "must have no parameter but sslmode=verify-full or sslmode=disable",
  );
}

export function isEncryptedDatabase(url: string): boolean {
  return url.endsWith("?sslmode=verify-full");
}

export function natsUrls(): z.ZodString {
  return serverUrls("nats:", "tls:").refine(
    (value) => new Set(value.split(",").map((url) => url.split("//")[0])).size === 1,
    "must begin with tls:// in all places, or in none",
  );
}

export function isEncryptedNats(urls: string): boolean {
  return urls.startsWith("tls://");
}

// The path is the number of a logical database.
export function redisUrl(): z.ZodString {
  return serverUrl("redis:", "rediss:").refine(
    (value) => /^rediss?:\/\/[^/?#]*(\/\d{0,5})?$/.test(value),
    "must have no path but the number of a database, and no parameters",
  );
}

export function isEncryptedRedis(url: string): boolean {
  return url.startsWith("rediss://");
}
