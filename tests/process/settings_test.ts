// A service that can't run as it is set up says all that is wrong at once, and ends with code 1.
import assert from "node:assert/strict";
import { readConfig, schema } from "../../entitlement/config.ts";
import { environmentName, SettingsError } from "../../shared/process/settings.ts";
import { startNats } from "../../tools/servers/nats.ts";
import { grant } from "../support/api.ts";
import { freshDatabase } from "../support/databases.ts";
import { settingsOf } from "../support/entitlement.ts";
import { type Settings, startService } from "../../tools/servers/service_process.ts";
import { natsUrl } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";
import { root } from "../../tools/root.ts";

const good = settingsOf("postgres://kenri:secret@127.0.0.1:5432/entitlement");

function problemsOf(more: Record<string, string | undefined>): string[] {
  try {
    readConfig((name) => ({ ...good, ...more })[name]);
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
}

Deno.test("every setting is refused where it makes no sense, by its own name", () => {
  const bad: Record<string, string[]> = {
    pem: ["", "secret.pem", "/a,b", "-----BEGIN SECRET-----"],
    url: ["", "secret", "http://u:secret@h", "postgres://", "nats://"],
    host: [" ", "a,b", "http://secret"],
    port: ["", "-1", "65536", "80a"],
    name: ["", " ", "a b", "a.*", ">", ".a", "a."],
    flag: ["", "yes", "TRUE"],
    duration: ["", "0s", "-1s", "10", "1.5s", "99999d"],
    rate: ["", "0", "-1", "2000000", "1e3", "often"],
    count: ["", "0", "-1", "1.5", "many", "1e9"],
    factor: ["", "-0.1", "1000", "half"],
    hostname: ["", " "],
    tokens: ["", ";", "secret", "shop sha256:secret debug:read", "shop debug:read"],
    algorithms: ["", " ", "none", "HS256", "RS256 HS512", "secret"],
  };
  const kindOf = (key: string) => {
    if (/tls-/.test(key)) return "pem";
    if (key.endsWith("url")) return "url";
    if (key === "access.tokens") return "tokens";
    if (key === "access.jwt.algorithms") return "algorithms";
    if (/jwt\.(issuer|audience)$/.test(key)) return "hostname";
    if (/host$/.test(key)) return "host";
    if (/hostname$/.test(key)) return "hostname";
    if (/port$/.test(key)) return "port";
    if (/nats\.(subject|stream)$/.test(key)) return "name";
    if (/enabled$/.test(key)) return "flag";
    if (/jitter/.test(key)) return "factor";
    if (/rate$/.test(key)) return "rate";
    return /(size|attempts|months|replicas|burst|per-user|at-once)$/.test(key)
      ? "count"
      : "duration";
  };
  for (const key of Object.keys(schema.shape)) {
    const name = environmentName(key);
    for (const value of bad[kindOf(key)] ?? []) {
      const problems = problemsOf({ [name]: value });
      assert.equal(problems.length, 1, `${name}=${value}: ${problems}`);
      assert.match(`${problems[0]}`, new RegExp(`^${name} `));
      assert.doesNotMatch(problems[0] ?? "", /secret/);
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
  assert.equal(problemsOf(wrong).length, 2, "said with all that is wrong");
});

Deno.test("a burst without a rate is refused, because it would be no limit", () => {
  assert.deepEqual(problemsOf({ ACCESS_RATE: "5", ACCESS_BURST: "9" }), []);
  assert.deepEqual(problemsOf({ ACCESS_RATE: "5" }), []);
  const [problem, ...rest] = problemsOf({ ACCESS_BURST: "9" });
  assert.match(problem ?? "", /^ACCESS_BURST also needs ACCESS_RATE/);
  assert.deepEqual(rest, []);
});

Deno.test("a session key that is short is refused, and not repeated", () => {
  assert.deepEqual(problemsOf({ ACCESS_SESSION_KEY: "5ec7e7".repeat(6) }), []);
  for (const key of ["5ec7e7".repeat(5), `${"5ec7e7".repeat(6)} x`, "é".repeat(40)]) {
    const [problem, ...rest] = problemsOf({ ACCESS_SESSION_KEY: key });
    assert.match(problem ?? "", /^ACCESS_SESSION_KEY must be at least 32/);
    assert.doesNotMatch(problem ?? "", /5ec7e7|é/);
    assert.deepEqual(rest, []);
  }
});

Deno.test("an issuer is named with its audience and its keys, or not at all", () => {
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

Deno.test("what is wrong with an entry of a token is said, and the entry is not", () => {
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

Deno.test("without settings only what has no sensible default is asked for", () => {
  const nothing = Object.fromEntries(Object.keys(good).map((name) => [name, undefined]));
  assert.deepEqual(problemsOf(nothing), [
    "ENTITLEMENT_DATABASE_URL is required",
    "ENTITLEMENT_NATS_SUBJECT is required",
    "ENTITLEMENT_NATS_STREAM is required",
    "NATS_URL is required",
  ]);
  assert.deepEqual(problemsOf({}), []);
});

const wrong: Settings = {
  ENTITLEMENT_DATABASE_URL: "mysql://kenri:secret@127.0.0.1/entitlement",
  ENTITLEMENT_NATS_STREAM: " ",
  ENTITLEMENT_NATS_SUBJECT: "entitlement.>",
  ENTITLEMENT_HTTP_PORT: "http",
  ENTITLEMENT_OUTBOX_LEASE: "0s",
  ENTITLEMENT_OUTBOX_BATCH_SIZE: "-5",
  ENTITLEMENT_OUTBOX_BACKOFF_JITTER_MIN: "2",
  NATS_URL: "nats:secret",
  SHUTDOWN_GRACE: "10",
};

Deno.test("all that is wrong is said at once, by the task and by the service itself", async () => {
  const ways = [
    ["task", "entitlement"],
    ["run", "--allow-env", "--allow-sys", "entitlement/main.ts"],
  ];
  for (const args of ways) {
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args,
      cwd: root,
      env: { ...wrong, NO_COLOR: "1" },
    }).output();
    const output = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
    assert.equal(code, 1, output);
    for (const name of Object.keys(wrong)) assert.match(output, new RegExp(`\\b${name} (must|is)`));
    assert.doesNotMatch(output, /secret|Uncaught| {4}at /);
  }
});

Deno.test("no password is printed in a service's life, whatever goes wrong", async () => {
  await using service = await startService("entitlement", {
    ...settingsOf("postgres://kenri:pa55word@127.0.0.1:9/entitlement"),
    NATS_URL: "nats://kenri:pa55word@localhost:9,nats://kenri:pa55word@[::1]:9",
  });
  assert.equal((await grant(service.url)).status, 503);
  await until(
    "it says that NATS is away",
    () => service.log.some(({ message }) => message.startsWith("NATS can't be reached")),
  );
  assert.equal(await service.stop(), 0);
  assert.doesNotMatch(JSON.stringify(service.log), /pa55word/);
});

Deno.test("account and encryption of the NATS url are used, and not left out in silence", async () => {
  await using database = await freshDatabase("entitlement");
  await using guarded = await startNats({
    users: `authorization { users = [{ user: "ken ri", password: "s@:/%" }] }`,
  });
  const settings = settingsOf(database.serviceUrl);
  const address = `127.0.0.1:${guarded.port}`;
  const says = async (url: string, what: RegExp) => {
    await using service = await startService("entitlement", { ...settings, NATS_URL: url });
    await until(`${what}`, () => what.test(JSON.stringify(service.log)));
  };
  for (const at of [address, `localhost:${guarded.port}`]) {
    await says(`nats://ken%20ri:s%40%3A%2F%25@${at}`, /Connected to NATS/);
  }
  await says(`nats://ken%20ri:wrong@${address}`, /can't be reached.*Authorization/);
  await says(natsUrl.replace("nats:", "tls:"), /can't be reached.*the server offers no TLS/);
});
