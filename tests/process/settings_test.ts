// A service with wrong settings reports all of them at once, and ends with code 1.
import assert from "node:assert/strict";
import { readConfig } from "../../entitlement/config.ts";
import { environmentName } from "../../shared/process/program.ts";
import { grant } from "../support/api.ts";
import { settingsOf } from "../support/entitlement.ts";
import { devSettings, futureServers } from "../../tools/dev/settings.ts";
import { configs } from "../../tools/service_configs.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { type Given, problemsWhen } from "./problems.ts";

const good = settingsOf("postgres://kenri:secret@127.0.0.1:5432/entitlement");

const problemsOf = (more: Given) =>
  problemsWhen(() => readConfig((name) => ({ ...good, ...more })[name]));

// Every service with the settings that it can start with.
const ofDev = devSettings(() => undefined, futureServers);
const services = Object.values(configs).map(({ schema, readConfig }) => ({
  schema,
  problemsOf: (more: Given) =>
    problemsWhen(() => readConfig((name) => ({ ...ofDev, ...more })[name])),
}));

const durations =
  /(interval|lease|backoff-(base|max|min)|probe-(min|max)|ttl|idle|staleness|window|leeway|grace|timeout|wait|ahead|after|keep)$/;

const origins = /^gateway\.(public-url|(account|entitlement|notification|matchmaking)\.url)$/;

// Each row is for all settings whose key matches.
const bad: [key: RegExp, problem: string, ...values: string[]][] = [
  [/tls-/, "must be a (certificate|private key) ", "secret.pem", "/a,b", "-----BEGIN SECRET-----"],
  [/url$/, "must (be|begin) (.*://|only)", "secret", "http://u:secret@h", "postgres://", "nats://"],
  [/gateway\.issuer$/, "must be .*://", "secret", "nats://h", "http://"],
  [origins, "must be only scheme, host and port", "https://h/secret", "https://h?secret"],
  [
    /gateway\.(public-url|issuer)$/,
    "must begin with https://",
    "http://kenri.example",
    "http://10.0.0.1",
  ],
  [
    /gateway\.issuer$/,
    "must have no user, query or fragment",
    "https://u:secret@h",
    "https://h/?secret",
  ],
  [/issuer-servers$/, "must be urls, .*https://", "secret", "https://h,secret"],
  [/database\.url$/, "must be a url, .* postgres://", "mysql://u:secret@h"],
  [/(issuer|audience|hostname|client-id|client-secret)$/, "must not be blank"],
  [/host$/, "must be (a host's name or address|an address such as)", "a,b", "http://secret"],
  [/^sender\.http\.host$/, "must be an address such as .*, not a name", "localhost", "127.1"],
  [/port$/, "must be a whole number from 0 ", "-1", "65536", "80a"],
  [/subject$/, "must be names joined by dots", "a b", "a.*", ">", ".a", "a.", "a.>", "a..b"],
  [
    /(stream|(?<!^matchmaking\.)durable)$/,
    "must not contain white space",
    "a b",
    "a*",
    ">",
    "a.b",
    "a/b",
  ],
  [/(enabled|plain-http|^matchmaking\.durable)$/, "must be true or false", "yes", "TRUE", "1"],
  [/\.backoff$/, "must be durations above zero such as", "5s,", "5s;9s", "5s,0s", "5"],
  [durations, "must be a duration above zero", "0s", "0ms", "-1s", "10", "1.5s", "soon"],
  [durations, "is too long", "99999d"],
  [/access\.rate$/, "must be a number from 0.01 ", "0", "-1", "2000000", "1e3", "often"],
  [
    /((?<!worker-batch-)size|attempts|months|days|deliver|replicas|burst|per-user|per-caller|to-park|at-once)$/,
    "must be a whole number from 1 ",
    ...["0", "-1", "1.5", "many", "1e9"],
  ],
  [/rate\.(login|user)$/, "must be a whole number from 1 ", "0", "-1", "1.5", "many", "1e9"],
  [/proxies$/, "must be a whole number from 0 to 100", "-1", "101", "one"],
  [/max-balance$/, "must be a whole number from 1 ", "0", "-1", "1.5", "many", "1e16"],
  [/unit$/, "must be 1 to 64 of ", "A", "a b", "a:b", "x".repeat(65)],
  [/jitter/, "must be a number from 0 ", "-0.1", "1000", "half"],
  [/jitter-min$/, "must not be above ", "2"],
  [/tokens$/, "must have at least one entry", ";"],
  [/tokens$/, "entry 1 must be ", "secret", "shop sha256:secret debug:read", "shop debug:read"],
  [/algorithms$/, "must be one or more of ", "none", "HS256", "RS256 HS512", "secret"],
  [/(seal|session)-key$/, "must be .*32 .*visible ASCII", "secret"],
  [/\.token$/, "must be .*32 .*visible ASCII", "secret", `${"s".repeat(32)},secret`],
  [
    /(secret-key|session\.keys)$/,
    "must be 32 random bytes, .*base64url",
    "secret",
    "5ec7e7".repeat(11),
  ],
  [/allow-addresses$/, "must be addresses or ranges", "localhost", "10.0.0.1/8", "10.0.0.0/33"],
  [/ports$/, "must be ports such as", "0", "65536", "443;8443", "443,", "https"],
  [/modes$/, "must be different names", "casual,", "casual,casual", "a b", "x".repeat(65)],
  [/worker-batch-size$/, "must be a whole number from 2 to 2000", "0", "1", "2001", "many"],
  [/bucket$/, "must have at most 64 ", "x".repeat(65)],
  [/user-ids$/, "must be shown or hashed or hidden", "all"],
  [/user-id-prefix$/, ""], // may be any text
];

Deno.test("every setting with a bad value is refused by its own name, with the reason", () => {
  for (const { schema, problemsOf } of services) {
    for (const key of Object.keys(schema.shape)) {
      const rows = bad.filter(([pattern]) => pattern.test(key));
      assert.ok(rows.length > 0, `${key} has no bad values`);
      for (const [, problem, ...values] of rows) {
        for (const value of problem === "" ? [] : ["", " ", ...values]) {
          const problems = problemsOf({ [environmentName(key)]: value });
          assert.equal(problems.length, 1, `${key}=${value}: ${problems}`);
          const reason = value.trim() === "" ? `(must not be blank|${problem})` : problem;
          assert.match(problems[0] ?? "", new RegExp(`^${environmentName(key)} ${reason}`));
          assert.doesNotMatch(problems[0] ?? "", /secret/);
        }
      }
    }
  }
});

const aClient = `shop sha256:${"0".repeat(64)} entitlements:write`;
const anIssuer = {
  ACCESS_JWT_ISSUER: "https://issuer.example",
  ACCESS_JWT_AUDIENCE: "kenri",
  ACCESS_JWT_JWKS_URL: "https://issuer.example/keys",
};

Deno.test("without credentials a service listens on the loopback, and nowhere else", () => {
  const own = ["127.0.0.1", "127.8.0.1", "::1", "localhost", "LocalHost"];
  for (const host of own) assert.deepEqual(problemsOf({ ENTITLEMENT_HTTP_HOST: host }), []);
  const others = ["0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "example.org", "127.0.0.1.example.org"];
  for (const host of [...others, "localhost.example.org", "::ffff:10.0.0.1", "0"]) {
    const [problem, ...rest] = problemsOf({ ENTITLEMENT_HTTP_HOST: host });
    assert.match(
      problem ?? "",
      /^ENTITLEMENT_HTTP_HOST must be .*: set ACCESS_TOKENS .* or ACCESS/,
    );
    assert.deepEqual(rest, []);
    for (const credentials of [{ ACCESS_TOKENS: aClient }, anIssuer]) {
      assert.deepEqual(problemsOf({ ENTITLEMENT_HTTP_HOST: host, ...credentials }), []);
    }
  }
  const wrong = { ENTITLEMENT_HTTP_HOST: "0.0.0.0", ENTITLEMENT_HTTP_PORT: "http" };
  assert.equal(problemsOf(wrong).length, 2, "reported with the other problems");
});

Deno.test("a burst without a rate is refused, because it would be no limit", () => {
  assert.deepEqual(problemsOf({ ACCESS_RATE: "5", ACCESS_BURST: "9" }), []);
  assert.deepEqual(problemsOf({ ACCESS_RATE: "5" }), []);
  const [problem, ...rest] = problemsOf({ ACCESS_BURST: "9" });
  assert.match(problem ?? "", /^ACCESS_BURST also needs ACCESS_RATE/);
  assert.deepEqual(rest, []);
});

Deno.test("a short session key is refused, and not repeated", () => {
  assert.deepEqual(problemsOf({ ACCESS_SESSION_KEY: "5ec7e7".repeat(6) }), []);
  for (const key of ["5ec7e7".repeat(5), `${"5ec7e7".repeat(6)} x`, "é".repeat(40)]) {
    const [problem, ...rest] = problemsOf({ ACCESS_SESSION_KEY: key });
    assert.match(problem ?? "", /^ACCESS_SESSION_KEY must be at least 32/);
    assert.doesNotMatch(problem ?? "", /5ec7e7|é/);
    assert.deepEqual(rest, []);
  }
});

Deno.test("an issuer needs its audience and its keys", () => {
  assert.deepEqual(problemsOf(anIssuer), []);
  for (const name of Object.keys(anIssuer)) {
    const [problem, ...rest] = problemsOf({ ...anIssuer, [name]: undefined });
    assert.match(problem ?? "", new RegExp(`^ACCESS_JWT_\\w+ also needs ${name}$`));
    assert.deepEqual(rest, []);
  }
  const keysAt = (url: string) => problemsOf({ ...anIssuer, ACCESS_JWT_JWKS_URL: url });
  const here = ["http://127.0.0.1:9/keys", "http://localhost/keys", "http://[::1]:9/keys"];
  for (const url of here) assert.deepEqual(keysAt(url), []);
  const bad = [
    "http://issuer.example/keys",
    "https://u:secret@issuer.example/keys",
    "file:///keys",
  ];
  for (const url of bad) {
    assert.equal(keysAt(url).length, 1, url);
    assert.doesNotMatch(`${keysAt(url)}`, /secret/);
  }
});

Deno.test("a wrong entry for a token is described, and not repeated", () => {
  const token = `kenri_${"5ec7e7".repeat(11)}`;
  const bad: [string, RegExp][] = [
    [`shop ${token} debug:read`, /entry 1 must be/],
    [`${aClient}; shop sha256:${"5EC7E7".repeat(11)} debug:read`, /entry 2 must be/],
    [`${aClient}; sh:op sha256:${"5ec7e7".repeat(11).slice(2)} debug:read`, /entry 2 must be/],
    [`${aClient} secret5ec7e7`, /entry 1 must have scopes from entitlements:write, /],
    [`${aClient};${aClient}`, /must not contain a digest twice/],
  ];
  for (const [ACCESS_TOKENS, problem] of bad) {
    const problems = problemsOf({ ACCESS_TOKENS });
    assert.equal(problems.length, 1, `${problems}`);
    assert.match(problems[0] ?? "", problem);
    assert.doesNotMatch(problems[0] ?? "", /5ec7e7/i);
  }
  const several = `${aClient}\n\n  shop  sha256:${"1".repeat(64)}\tdebug:read ;`;
  assert.deepEqual(problemsOf({ ACCESS_TOKENS: several }), []);
});

Deno.test("without settings only those without a default are asked for", () => {
  const nothing = Object.fromEntries(Object.keys(good).map((name) => [name, undefined]));
  assert.deepEqual(problemsOf(nothing), [
    "ENTITLEMENT_DATABASE_URL is required",
    "ENTITLEMENT_NATS_SUBJECT is required",
    "ENTITLEMENT_NATS_STREAM is required",
    "NATS_URL is required",
  ]);
  assert.deepEqual(problemsOf({}), []);
});

Deno.test("no password is printed in a service's life, whatever goes wrong", async () => {
  await using service = await startService("entitlement", {
    ...settingsOf("postgres://kenri:pa55word@127.0.0.1:9/entitlement"),
    NATS_URL: "nats://kenri:pa55word@localhost:9,nats://kenri:pa55word@[::1]:9",
  });
  assert.equal((await grant(service.url)).status, 503);
  await until(
    "it reports that NATS is unavailable",
    () => service.log.some(({ message }) => message.startsWith("NATS can't be reached")),
  );
  assert.equal(await service.stop(), 0);
  assert.doesNotMatch(JSON.stringify(service.log), /pa55word/);
});
