// The tools that make credentials, and the tools that send them.
import assert from "node:assert/strict";
import { readConfig as readAccount } from "../../account/config.ts";
import { readConfig as readEntitlement } from "../../entitlement/config.ts";
import { readConfig as readGateway } from "../../gateway/config.ts";
import { readConfig as readMatchmaking } from "../../matchmaking/config.ts";
import { readConfig as readNotification } from "../../notification/config.ts";
import { readConfig as readSender } from "../../sender/config.ts";
import { scopes } from "../../proto/scopes.ts";
import { digestOf, readEntries } from "../../shared/access/tokens.ts";
import { bearer, newClient, tokensOf } from "../support/access.ts";
import { assertError, call, grant } from "../support/api.ts";
import { startEntitlement } from "../support/entitlement.ts";
import { ops } from "../operators/ops.ts";
import { yamlOf } from "../support/pages.ts";
import { startStack } from "../support/stack.ts";
import { root } from "../../tools/root.ts";

async function run(program: string, ...args: string[]) {
  const { code, stdout, stderr } = await new Deno.Command(program, {
    args,
    cwd: root,
    env: { NO_COLOR: "1" },
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, output: text(stdout), errors: text(stderr) };
}

const token = (...args: string[]) => run(Deno.execPath(), "task", "--quiet", "token", ...args);

Deno.test("deno task token makes a token, and an entry with which a service accepts it", async () => {
  const { code, output } = await token("shop", "entitlements:write", "entitlements:write");
  assert.equal(code, 0);
  const [made = "", ...others] = output.match(/kenri_[0-9a-f]{64}\b/g) ?? [];
  assert.deepEqual(others, [], "it is shown once");
  const [entry = ""] = output.match(/shop sha256:.*/) ?? [];
  assert.equal(entry, `shop sha256:${digestOf(made)} entitlements:write`);
  await using kenri = await startEntitlement({ ACCESS_TOKENS: entry });
  assert.equal((await grant(kenri.url, {}, undefined, bearer(made))).status, 200);
  assertError(await call(`${kenri.url}/metrics`, { headers: bearer(made) }), 403, "FORBIDDEN");
  assert.ok(!(await token("shop", "entitlements:write")).output.includes(made));
});

Deno.test("no token is made without a name or with an unknown scope", async () => {
  for (const args of [[], ["shop"], ["sh:op", "debug:read"], ["shop", "debug:write"]]) {
    const { code, output, errors } = await token(...args);
    assert.deepEqual([code, output], [1, ""], `${args}`);
    for (const scope of scopes) assert.ok(errors.includes(scope), errors);
  }
});

Deno.test("deno task ops sends its token, and reports a missing token or scope", async () => {
  const operator = newClient("kim", "debug:read");
  const settings = tokensOf(operator);
  await using stack = await startStack({ entitlement: settings, notification: settings });
  const without = await ops(stack, "status");
  assert.equal(without.code, 3);
  assert.match(without.errors, /a credential is required.*--token or KENRI_TOKEN/);
  const shown = await ops(stack, "status", "--token", operator.token);
  assert.notEqual(shown.code, 3, shown.errors);
  const lacking = await ops(
    stack,
    ...["replay", "--from", "1h", "--reason", "r", "--token", operator.token],
  );
  assert.equal(lacking.code, 3);
  assert.match(lacking.errors, /the scope operations:write/);
});

Deno.test("compose.yaml starts no service without credentials, and deploy/make-secrets makes them", async () => {
  const { services } = yamlOf("compose.yaml");
  const read = {
    account: readAccount,
    entitlement: readEntitlement,
    gateway: readGateway,
    matchmaking: readMatchmaking,
    notification: readNotification,
  };
  const folder = await Deno.makeTempDir();
  const { code, output } = await run("deploy/make-secrets", `${folder}/env`);
  assert.equal(code, 0, output);
  const env = await Deno.readTextFile(`${folder}/env`);
  const valueIn = (name: string) => new RegExp(`^${name}='?(.*?)'?$`, "m").exec(env)?.[1] ?? "";
  const ACCESS_TOKENS = valueIn("ACCESS_TOKENS");
  for (const [name, readConfig] of Object.entries(read)) {
    const { environment } = services[name];
    assert.match(environment.ACCESS_TOKENS, /^\$\{ACCESS_TOKENS:\?/, "compose refuses without");
    const given: Record<string, string> = {
      ...withValues(environment, valueIn),
      [`${name.toUpperCase()}_DATABASE_URL`]: "postgres://role:secret@postgres:5432/name",
      [`${name.toUpperCase()}_DEBUG_ENABLED`]: "false",
    };
    assert.equal(readConfig((variable) => given[variable]).access.tokens.length, 7);
    assert.throws(() =>
      readConfig((variable) => variable === "ACCESS_TOKENS" ? undefined : given[variable])
    );
  }
  const ofSender = withValues(services.sender.environment, valueIn);
  assert.equal(readSender((variable) => ofSender[variable]).tokens.length, 3);
  assert.equal(valueIn("SENDER_TOKEN"), ofSender["SENDER_TOKEN"]);
  const known = new Map(readEntries(ACCESS_TOKENS).map(({ client, digest }) => [client, digest]));
  const prometheus = await Deno.readTextFile(`${folder}/env.prometheus-token`);
  const made = [...output.matchAll(/^(\w+) (kenri_[0-9a-f]{64})$/gm)].map(([, ...made]) => made);
  assert.deepEqual(made.map(([client]) => client), ["shop", "operator"]);
  for (const [client = "", token = ""] of [...made, ["prometheus", prometheus]]) {
    assert.equal(known.get(client), digestOf(token), client);
    assert.ok(!env.includes(token), "only its digest is kept");
  }
  const entries = readEntries(ACCESS_TOKENS);
  for (const [service, scopes] of Object.entries(ofGateway)) {
    const token = valueIn(`GATEWAY_${service.toUpperCase()}_TOKEN`);
    const entry = entries.find(({ digest }) => digest === digestOf(token));
    assert.deepEqual([entry?.client, entry?.scopes], ["gateway", scopes], service);
  }
  assert.equal(((await Deno.stat(`${folder}/env`)).mode ?? 0) & 0o077, 0);
  assert.equal((await run("deploy/make-secrets", `${folder}/env`)).code, 1, "made once");
  await Deno.remove(folder, { recursive: true });
});

// What the gateway's token for each service allows, and nothing else.
const ofGateway = {
  account: ["accounts:resolve", "accounts:read", "accounts:write", "accounts:act-as"],
  entitlement: ["entitlements:read", "points:read"],
  matchmaking: ["matchmaking:act-as"],
  notification: ["notifications:read"],
};

Deno.test("deploy/make-secrets --add adds what a file of an older version lacks, and changes nothing", async () => {
  const folder = await Deno.makeTempDir();
  const file = `${folder}/env`;
  assert.equal((await run("deploy/make-secrets", "--add", file)).code, 1, "nothing to add to");
  await run("deploy/make-secrets", file);
  const whole = await Deno.readTextFile(file);
  const namesIn = (text: string) => text.match(/^\w+(?==)/gm)?.sort();
  const old = whole.split("\n").filter((line) => !/^(ACCOUNT|GATEWAY|KEYCLOAK)/.test(line));
  const kept = old.join("\n").trimEnd(); // the last line has no end
  await Deno.writeTextFile(file, kept);
  const { code, output } = await run("deploy/make-secrets", "--add", file);
  assert.equal(code, 0, output);
  const text = await Deno.readTextFile(file);
  assert.ok(text.startsWith(`${kept}\n`), "nothing was changed");
  assert.deepEqual(namesIn(text), namesIn(whole));
  const token = /^GATEWAY_ENTITLEMENT_TOKEN=(.*)$/m.exec(text)?.[1] ?? "";
  const entries = readEntries(output.trim().split("\n").at(-1) ?? "");
  assert.deepEqual(entries.map(({ scopes }) => scopes), Object.values(ofGateway));
  assert.equal(entries[1]?.digest, digestOf(token));
  assert.equal((await run("deploy/make-secrets", "--add", file)).output, "");
  assert.equal(await Deno.readTextFile(file), text);
  await Deno.writeTextFile(file, text.replace(/^\w*MATCHMAKING.*\n/gm, ""));
  const [, entry = ""] = (await run("deploy/make-secrets", "--add", file)).output.split("\n");
  assert.deepEqual(readEntries(entry).map(({ scopes }) => scopes), [ofGateway.matchmaking]);
  assert.deepEqual(namesIn(await Deno.readTextFile(file)), namesIn(whole));
  await Deno.remove(folder, { recursive: true });
});

/** What Compose makes of the environment of a container. */
function withValues(
  environment: Record<string, string>,
  valueOf: (name: string) => string,
): Record<string, string> {
  const entries = Object.entries(environment).map(([name, value]) => [
    name,
    String(value).replaceAll(
      /\$\{(\w+):(?:-([^}]*))?[^}]*\}/g,
      (_, name, standard = "") => valueOf(name) || standard,
    ),
  ]);
  return Object.fromEntries(entries);
}
