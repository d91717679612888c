// Settings and trace headers are read without a server. Any value is accepted, or refused with the name
// of its setting, and nothing else happens.
import assert from "node:assert/strict";
import fc from "fast-check";
import pg from "pg";
import { traceOf } from "../../shared/http/trace.ts";
import { SettingsError } from "../../shared/process/settings.ts";
import { environmentName, needsOf } from "../../shared/process/program.ts";
import { devSettings } from "../../tools/dev/settings.ts";
import { configs, type ServiceConfigs } from "../../tools/service_configs.ts";
import { programs, type ServiceName } from "../../tools/services.ts";
import { anyText, fuzz, headerText } from "./fuzz.ts";

type Environment = Record<string, string>;

const secret = "pa55word";

const required: Environment = devSettings(() => undefined, {
  postgres: () => `postgres://kenri:${secret}@127.0.0.1:9/kenri`,
  nats: "nats://127.0.0.1:9",
  redis: "redis://127.0.0.1:9",
  issuer: "http://127.0.0.1:9",
});

const urlPart = fc.oneof(
  fc.constantFrom(
    "kenri",
    "%zz",
    "%00",
    "%2f",
    "[::1]",
    "::1",
    "a b",
    "a,b",
    "",
    "host",
    "9",
    "?a",
  ),
  fc.string({ unit: "binary", maxLength: 8 }),
);
const scheme = fc.constantFrom("postgres", "nats", "tls", "redis", "rediss", "http");
const host = fc.oneof(fc.constant("127.0.0.1"), urlPart);
const url = fc.tuple(scheme, urlPart, host, urlPart)
  .map(([scheme, user, host, path]) => `${scheme}://${user}:${secret}@${host}/${path}`);
const quantity = fc.tuple(
  fc.oneof(fc.integer(), fc.double(), fc.bigInt()).map(String),
  fc.constantFrom("", "ms", "s", "m", "h", "d", "w", " s"),
).map((parts) => parts.join(""));
const value = fc.oneof(
  fc.constantFrom("true", "false", "0", "1", "5s", "1d", "a.b", "a.*", ">", "::", "127.0.0.1"),
  anyText,
  quantity,
);

for (const [name, { schema, readConfig }] of Object.entries(configs)) {
  const names = Object.keys(schema.shape).map(environmentName);
  const urls = names.filter((name) => name.endsWith("_URL"));
  const setting = fc.oneof(
    fc.tuple(fc.constantFrom(...names), value),
    ...(urls.length > 0 ? [fc.tuple(fc.constantFrom(...urls), url)] : []),
  );
  // Some runs change only one, because others mostly fail first and hide it.
  const settings = fc.oneof(setting.map((one) => [one]), fc.array(setting, { maxLength: 8 }));
  const environment = settings
    .map((given): Environment => ({ ...required, ...Object.fromEntries(given) }));

  Deno.test(`any environment gives a configuration of ${name}, or a list of named problems`, async () => {
    let taken = 0;
    await fuzz(
      fc.property(environment, (given) => {
        const read = (variable: string) => given[variable];
        const problems = problemsOf(() => {
          const config = readConfig(read);
          const { program } = programs[name as ServiceName];
          const needs = needsOf(program, read, "");
          if (program.outside) {
            assert.ok(needs.denied?.includes("10.0.0.0/8"));
          } else {
            assert.deepEqual(needs, {
              net: [...new Set(addressesIn(config))],
              read: [...new Set(filesIn(config))],
            });
          }
          const { databaseUrl, nats } = config;
          if (databaseUrl) assert.ok(new pg.Client({ connectionString: databaseUrl }));
          for (const url of urlsOf(nats)) decodeURIComponent(new URL(url).username);
          taken++;
        });
        assert.equal(new Set(problems).size, problems.length);
        for (const problem of problems) {
          assert.ok(names.includes(problem.split(" ")[0] ?? ""), problem);
          assert.doesNotMatch(problem, new RegExp(secret));
        }
      }),
      5_000,
    );
    assert.ok(taken > 0);
  });
}

type Config =
  & ReturnType<ServiceConfigs["readConfig"]>
  & Partial<Record<typeof servers[number], { url?: string }>>;

// What a service connects to besides its database, NATS and Redis, in the order of its program.ts.
const servers = [
  ...["sender", "issuer"] as const,
  ...["account", "entitlement", "notification", "matchmaking"] as const,
] as const;

function urlsOf(nats: Config["nats"]): string[] {
  return nats?.urls.split(",") ?? [];
}

// The addresses that the service will connect to, from its configuration.
function addressesIn(config: Config): string[] {
  const { http, databaseUrl, nats, redis, access } = config;
  const address = (url: string, port: number) => {
    const { hostname, port: given } = new URL(url);
    return `${hostname}:${given || port}`;
  };
  const own = http.hostname.includes(":") ? `[${http.hostname}]` : http.hostname;
  const others = servers.map((name) => config[name]?.url);
  return [
    `${own}:${http.port}`,
    ...(databaseUrl ? [address(databaseUrl, 5432)] : []),
    ...urlsOf(nats).map((url) => address(url, 4222)),
    ...(redis ? [address(redis.url, 6379)] : []),
    ...[access?.jwt?.jwksUrl, ...others].flatMap((url) =>
      url === undefined ? [] : [address(url, url.startsWith("https:") ? 443 : 80)]
    ),
  ];
}

function filesIn({ databaseTls, nats, redis }: Config): string[] {
  return [databaseTls, nats?.tls, redis?.tls].flatMap((tls) => [tls?.ca, tls?.cert, tls?.key])
    .filter((given) => given !== undefined).filter((given) => given.startsWith("/"));
}

function problemsOf(read: () => void): string[] {
  try {
    read();
    return [];
  } catch (error) {
    if (error instanceof SettingsError && error.problems.length > 0) return error.problems;
    throw error;
  }
}

const hex = (length: number) =>
  fc.oneof(fc.stringMatching(new RegExp(`^[0-9a-f]{${length}}$`)), fc.constant("0".repeat(length)));
const traceparent = fc.oneof(
  fc.tuple(fc.constantFrom("00", "01", "ff", "0"), hex(32), hex(16), hex(2))
    .map((parts) => parts.join("-")),
  headerText,
);
const traceHeaders = fc.record({
  "traceparent": traceparent,
  "X-Trace-Id": fc.oneof(hex(32), headerText),
}, { requiredKeys: [] });

Deno.test("any trace headers give a valid trace, and the caller's own if it is valid", async () => {
  const w3c = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
  await fuzz(
    fc.property(traceHeaders, (given) => {
      const headers = new Headers(given);
      const { traceId, traceparent } = traceOf(headers);
      assert.match(traceId, /^[\x21-\x7e]{1,255}$/);
      if (traceparent !== null) assert.match(traceparent, w3c);
      const parent = headers.get("traceparent") ?? "";
      if (w3c.test(parent)) assert.equal(traceparent, parent);
      const named = headers.get("X-Trace-Id") ?? "";
      if (/^[\x21-\x7e]{1,255}$/.test(named)) assert.equal(traceId, named);
    }),
    20_000,
  );
});
