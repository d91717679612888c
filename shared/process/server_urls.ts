import { z } from "zod";
import { serverUrl, serverUrls } from "./setting_kinds.ts";

// Where servers are, and whether the connection to them is encrypted. Either it is, and then the
// server is verified, or it is not: there is nothing between.

// The client library would read a host, a port, a password and files out of parameters, for which
// no permission is made, and knows modes that encrypt to whoever answers.
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
