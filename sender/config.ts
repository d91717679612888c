import { digestOf, type TokenEntry } from "@kenri/shared/access/tokens.ts";
import { accessSettings } from "@kenri/shared/access/settings.ts";
import type { HttpOptions } from "@kenri/shared/http/serve.ts";
import type { OutsideRules } from "@kenri/shared/net/outside_url.ts";
import { isAddress, type Range, readRange } from "@kenri/shared/net/public_addresses.ts";
import type { UserIds } from "@kenri/shared/process/log.ts";
import { shutdown } from "@kenri/shared/process/service_settings.ts";
import { flag, port, secretKeys, text } from "@kenri/shared/process/setting_kinds.ts";
import { environment, parseSettings, prefixed } from "@kenri/shared/process/settings.ts";
import { z } from "zod";
import { program } from "./program.ts";

// A permission to listen is made of the address, and a name may have several.
const address = () =>
  text().refine(isAddress, "must be an address such as 127.0.0.1 or 0.0.0.0, not a name");

export const schema = z.object({
  ...prefixed("sender", {
    "http.host": address().prefault("127.0.0.1").describe("Address to listen on"),
    "http.port": port().prefault(`${program.port}`).describe("Port to listen on"),
    "token": secretKeys().describe(
      "32 or more random characters: the token of notification. To rotate it, the new one, a comma and the old one",
    ),
    "allow-addresses": ranges().optional().describe(
      "Addresses or CIDR ranges, separated by commas, that it may send to although they are not public, and on any port",
    ),
    "plain-http": flag().prefault("false").describe(
      "Whether it also sends to `http://` and port 80",
    ),
    "ports": ports().prefault("443,8443").describe("Ports that it may send to"),
  }),
  "access.tokens": accessSettings["access.tokens"],
  ...shutdown.settings,
});

export interface Config {
  http: HttpOptions;
  tokens: TokenEntry[];
  rules: OutsideRules;
  shutdownGraceMs: number;
  logUserIds: UserIds;
}

// Each send under way holds two connections, and a container may have 4096 open files.
const sendsAtOnce = 1_000;

export function readConfig(read: (name: string) => string | undefined = environment): Config {
  const settings = parseSettings(schema, read);
  return {
    http: {
      hostname: settings["sender.http.host"],
      port: settings["sender.http.port"],
      requestsAtOnce: sendsAtOnce,
    },
    tokens: tokensOf(settings["sender.token"], settings["access.tokens"] ?? []),
    rules: {
      plainHttp: settings["sender.plain-http"],
      ports: settings["sender.ports"],
      allowed: settings["sender.allow-addresses"] ?? [],
    },
    shutdownGraceMs: settings["shutdown.grace"],
    logUserIds: "hidden", // it knows none
  };
}

// Only notification may send. Those who may read the metrics of the other services may do so here.
function tokensOf(ofSender: string[], others: TokenEntry[]): TokenEntry[] {
  const senders = ofSender.map((token): TokenEntry => ({
    client: "notification",
    digest: digestOf(token),
    scopes: ["send"],
  }));
  const readers = others.filter(({ scopes }) => scopes.includes("metrics:read"))
    .map((entry): TokenEntry => ({ ...entry, scopes: ["metrics:read"] }));
  return [...senders, ...readers];
}

function ranges(): z.ZodPipe<z.ZodString, z.ZodTransform<Range[], string>> {
  return text().transform((written, context) => {
    const read = written.split(",").map((part) => readRange(part.trim()));
    if (read.every((range) => range !== undefined)) return read;
    context.addIssue(
      `must be addresses or ranges such as 10.1.0.0/16, separated by commas, not ${
        JSON.stringify(written)
      }`,
    );
    return z.NEVER;
  });
}

function ports(): z.ZodPipe<z.ZodString, z.ZodTransform<number[], string>> {
  return text().transform((written, context) => {
    const parts = written.split(",").map((part) => part.trim());
    const read = parts.map((part) => /^\d{1,5}$/.test(part) ? Number(part) : 0);
    if (read.every((port) => port > 0 && port <= 65_535)) return read;
    context.addIssue(`must be ports such as 443,8443, not ${JSON.stringify(written)}`);
    return z.NEVER;
  });
}
