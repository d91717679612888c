// compose.yaml and the Dockerfile allow nothing that is not needed.
import assert from "node:assert/strict";
import { parse } from "yaml";
import { readConfig as provisionConfig } from "../../tools/provision/config.ts";
import { environmentName, fixedFlags, type Service } from "../../shared/process/program.ts";
import * as descriptors from "../../services.ts";
import { bundleFlags, type ProgramName, programs, serviceNames } from "../../tools/services.ts";
import { entryPoint, imageCommand } from "../process/image.ts";

// deno-lint-ignore no-explicit-any
type Any = any;

const read = (name: string) => Deno.readTextFileSync(new URL(`../../${name}`, import.meta.url));
const text = read("compose.yaml");
const { services, networks }: Any = parse(text, { merge: true });
const ours = Object.keys(programs) as ProgramName[];

for (const [name, service] of Object.entries<Any>(services)) {
  Deno.test(`the container ${name} has a read-only root, no capabilities and limits`, () => {
    // Keycloak does not start without writing into its own folders.
    assert.equal(service.read_only, name !== "keycloak");
    assert.deepEqual(service.cap_drop, ["ALL"]);
    // No other option is set, so seccomp and AppArmor stay as the engine has them.
    assert.deepEqual(service.security_opt, ["no-new-privileges:true"]);
    assert.deepEqual(service.cap_add, name === "nats-volume" ? ["CHOWN"] : undefined);
    for (const open of ["privileged", "pid", "ipc", "userns_mode", "devices", "cgroup"]) {
      assert.equal(service[open], undefined, open);
    }
    assert.ok(service.mem_limit && service.pids_limit > 0);
    assert.ok(service.logging.options["max-size"]);
    assert.match(service.image, /:-[\w./-]+:(v?\d[\w.-]+|local)\}$/, "a version");
  });

  Deno.test(`the container ${name} does not run as root, and can change no file of the machine`, () => {
    // The images of the profiles set a user of their own.
    const withoutUser = ["prometheus", "grafana", "traces", "keycloak"];
    if (name === "nats-volume") assert.equal(service.network_mode, "none");
    else if (!withoutUser.includes(name)) {
      assert.match(service.user, /^(65532:65532|postgres|redis)$/);
    }
    for (const volume of service.volumes ?? []) {
      if (/^[./]/.test(volume)) assert.match(volume, /^\.\/deploy\/.*:ro$/);
      assert.doesNotMatch(volume, /docker\.sock/);
    }
    for (const tmpfs of service.tmpfs ?? []) assert.match(tmpfs, /size=\d+m/);
  });

  Deno.test(`the container ${name} can be reached only from this machine, or not at all`, () => {
    for (const port of service.ports ?? []) assert.match(port, /^127\.0\.0\.1:/);
    if (["postgres", "nats", "redis", "migrate", "provision"].includes(name)) {
      assert.equal(service.ports, undefined);
    }
    assert.notEqual(service.network_mode, "host");
  });
}

Deno.test("the servers are in a network without internet access, with the programs that need them", () => {
  assert.equal(networks.servers.internal, true);
  const there = Object.keys(services).filter((name) =>
    services[name].networks?.includes("servers")
  );
  const theirs = ours.filter((name) => !programs[name].program.outside);
  assert.deepEqual(there.sort(), ["nats", "postgres", "redis", ...theirs].sort());
});

Deno.test("the program that may reach the world is with its only caller, and never with a server", () => {
  const [sender = ""] = ours.filter((name) => programs[name].program.outside);
  assert.deepEqual(services[sender].networks, ["outside"]);
  assert.equal(services[sender].ports, undefined);
  assert.equal(networks.outside?.internal, undefined);
  const there = Object.keys(services).filter((name) =>
    services[name].networks?.includes("outside")
  );
  assert.deepEqual(there.sort(), ["notification", "prometheus", sender]);
  const withToken = Object.keys(services).filter((name) =>
    JSON.stringify(services[name].environment ?? {}).includes("${SENDER_TOKEN:")
  );
  assert.deepEqual(withToken.sort(), ["notification", sender]);
});

Deno.test("each program gets only its own passwords, and none is in the file", () => {
  const given = (
    name: string,
  ) => [
    ...new Set(JSON.stringify(services[name].environment).match(/\w+_PASSWORD(?=[:}])/g) ?? []),
  ];
  for (const service of Object.values<Service>(descriptors)) {
    const prefix = environmentName(service.name);
    assert.deepEqual(given(service.name), [
      ...(service.database ? [`${prefix}_PASSWORD`] : []),
      ...(service.usesNats ? [`${prefix}_NATS_PASSWORD`] : []),
      ...(service.usesRedis ? [`${prefix}_REDIS_PASSWORD`] : []),
    ]);
  }
  assert.deepEqual(given("postgres"), ["OWNER_PASSWORD"]);
  assert.deepEqual(given("redis"), ["MATCHMAKING_REDIS_PASSWORD", "OPERATOR_REDIS_PASSWORD"]);
  const sealing = Object.keys(services).filter((name) =>
    services[name].environment?.ENTITLEMENT_SEAL_KEY
  );
  assert.deepEqual(sealing, ["entitlement"]);
  for (const setting of ["GATEWAY_SESSION_KEYS", "GATEWAY_ACCOUNT_TOKEN"]) {
    const having = Object.keys(services).filter((name) => services[name].environment?.[setting]);
    assert.deepEqual(having, ["gateway"], setting);
  }
  assert.deepEqual(given("provision"), ["PROVISION_NATS_PASSWORD"]);
  assert.ok(!given("migrate").some((name) => name.includes("NATS")));
  assert.doesNotMatch(text, /:\/\/\w+:[^$\s"]+@/);
});

Deno.test("Redis keeps its data, refuses more instead of dropping any, and has memory for a copy", () => {
  const { redis } = services;
  const settings = Object.fromEntries(
    read("deploy/redis.conf").split("\n").map((line) => line.split(" ")).filter(([name]) =>
      name && name !== "#"
    ),
  );
  assert.deepEqual(settings, {
    port: "6379",
    appendonly: "yes",
    appendfsync: "everysec",
    save: '""',
    maxmemory: "384mb",
    "maxmemory-policy": "noeviction",
  });
  assert.ok(2 * parseInt(settings["maxmemory"] ?? "") < 1024 && redis.mem_limit === "1g");
  assert.equal(redis.volumes[0], "redis:/data");
  assert.deepEqual(services.matchmaking.depends_on.redis, { condition: "service_healthy" });
});

Deno.test("Keycloak is the gateway's issuer under one address for browsers and for the gateway", () => {
  const { gateway, keycloak } = services;
  const { KC_HOSTNAME, KC_HTTP_PORT } = keycloak.environment;
  const text = read("deploy/keycloak/kenri-realm.json");
  const { realm, clients: [client], users }: Any = JSON.parse(text);
  assert.deepEqual(keycloak.profiles, ["login"]);
  assert.equal(keycloak.network_mode, "service:gateway");
  assert.equal(KC_HOSTNAME, `http://localhost:${KC_HTTP_PORT}`);
  assert.equal(gateway.environment.GATEWAY_ISSUER, `${KC_HOSTNAME}/realms/${realm}`);
  assert.equal(gateway.ports[1], `127.0.0.1:\${KEYCLOAK_PORT:-${KC_HTTP_PORT}}:${KC_HTTP_PORT}`);
  assert.equal(settingsOf("gateway")["GATEWAY_CLIENT_ID"], client.clientId);
  assert.deepEqual(client.redirectUris, ["${GATEWAY_PUBLIC_URL}/login/callback"]);
  assert.equal(client.attributes["pkce.code.challenge.method"], "S256");
  // Keycloak fills in the variables of its container, and no secret is in the file.
  const filledIn = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = ""]) => name);
  for (const name of filledIn) assert.ok(name in keycloak.environment, name);
  for (const name of ["GATEWAY_CLIENT_SECRET", "GATEWAY_PUBLIC_URL"]) {
    assert.equal(keycloak.environment[name], gateway.environment[name]);
  }
  const { secret } = client;
  const values = users.flatMap(({ credentials }: Any) =>
    credentials.map(({ value }: Any) => value)
  );
  for (const value of [secret, ...values]) assert.match(value, /^\$\{\w+\}$/);
});

Deno.test("the streams are made as the services want them, before the services start", () => {
  const { environment } = services.provision;
  assert.match(provisionConfig((key) => environment[key]).nats.urls, /^nats:\/\/provision:/);
  for (const name of serviceNames.filter((name) => !programs[name].program.outside)) {
    for (const [key, value] of Object.entries(services[name].environment)) {
      if (/^\w+_NATS_/.test(key)) assert.equal(environment[key], value, key);
    }
    for (const first of ["migrate", "provision"]) {
      assert.deepEqual(services[name].depends_on[first], {
        condition: "service_completed_successfully",
      });
    }
  }
  assert.equal(services.provision.restart, "no");
});

// The settings of a service, with a value for each secret and each choice of .env.
function settingsOf(name: string): Record<string, string> {
  const given = Object.entries<string>(services[name].environment).map(([setting, value]) => [
    setting,
    String(value).replaceAll(/\$\{\w+(?::-([^}]*))?[^}]*\}/g, (_, standard) => standard ?? "x"),
  ]);
  return Object.fromEntries(given);
}

for (const name of ours) {
  Deno.test(`the command of ${name} grants only the permissions that its settings need`, () => {
    const settings = settingsOf(name);
    assert.deepEqual(services[name].command, imageCommand(name, (setting) => settings[setting]));
  });
}

Deno.test("the image runs one program as an unprivileged user, without a shell, and can start no other", () => {
  const lines = read("Dockerfile").replaceAll("\\\n", " ").split("\n");
  const last = lines.slice(lines.findLastIndex((line) => line.startsWith("FROM")));
  const all = (instruction: string) => lines.filter((line) => line.startsWith(`${instruction} `));
  assert.deepEqual(all("USER"), ["USER 65532:65532"]);
  assert.ok(last.includes("USER 65532:65532"));
  assert.deepEqual(all("ADD"), []);
  assert.deepEqual(last.filter((line) => line.startsWith("RUN")), []);
  assert.deepEqual(last.filter((line) => line.startsWith("COPY")), [
    "COPY --from=bundles /bundles /kenri",
  ]);
  for (const base of all("ARG")) assert.match(base, /=denoland\/deno:[\w-]+-\d+\.\d+\.\d+$/);
  assert.equal(all("ENTRYPOINT").length, 1);
  // The flags that depend on the settings are in each container's command.
  assert.deepEqual(entryPoint().filter((flag) => !/^--(allow|ignore)-env=/.test(flag)), [
    "run",
    ...bundleFlags,
    ...fixedFlags.filter((flag) => !flag.includes("env")),
  ]);
  assert.ok(entryPoint().includes(fixedFlags[0] ?? ""));
});

Deno.test("in the image a program can read only the variables of its settings", () => {
  const flag = entryPoint().find((one) => one.startsWith("--allow-env=")) ?? "";
  const names = flag.replace("--allow-env=", "").split(",");
  for (const name of names) assert.match(name, /^([A-Z]+_\*|HOSTNAME)$/);
  const isSeen = (variable: string) =>
    names.some((name) => name === variable || variable.startsWith(name.replace(/\*$/, "")));
  for (const { program } of Object.values(programs)) {
    assert.deepEqual(program.settings.filter((setting) => !isSeen(setting)), []);
  }
  const used = names.filter((name) =>
    Object.values(programs).some(({ program }) =>
      program.settings.some((setting) => setting.startsWith(name.replace("*", "")))
    )
  );
  assert.deepEqual(used, names);
});
