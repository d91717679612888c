// The manifests in docs/kubernetes match each other and the services. (`deno task kubernetes:check`
// checks that Kubernetes accepts them.)
import assert from "node:assert/strict";
import { readDatabaseUrls } from "../../migrations/config.ts";
import { environmentName } from "../../shared/process/program.ts";
import {
  readConfig as provisionConfig,
  schema as provisionSchema,
} from "../../tools/provision/config.ts";
import { withDatabase } from "../../migrations/program.ts";
import * as services from "../../services.ts";
import { configs } from "../../tools/service_configs.ts";
import type { ServiceName } from "../../tools/services.ts";
import { databaseUrlNames } from "../../tools/dev/settings.ts";
import { imageCommand } from "../process/image.ts";
import { type Any, containerOf, folder, guide, named, workloads } from "./manifests.ts";

// The url that the guide puts into the secrets.
const natsUrls = /--from-literal=url='(nats:.*)'/.exec(guide)?.[1] ?? "";

const redisUrl = /--from-literal=url='(redis:.*)'/.exec(guide)?.[1] ?? "";

const databaseUrl = /--from-literal=url='(postgres:.*)'/.exec(guide)?.[1] ?? "";

const secrets: Record<string, string> = {
  key: "k".repeat(32),
  token: "t".repeat(32),
  "secret-key": "k".repeat(43),
  "session-keys": "k".repeat(43),
  "client-secret": "s".repeat(32),
  ...Object.fromEntries(
    ["account", "entitlement", "matchmaking", "notification"].map((
      name,
    ) => [`${name}-token`, "t".repeat(32)]),
  ),
  url: databaseUrl,
  ...Object.fromEntries(withDatabase(services).map(({ name }) => [`${name}-url`, databaseUrl])),
  tokens: `shop sha256:${"0".repeat(64)} entitlements:write`,
};

const urls: Record<string, string> = {
  NATS_URL: natsUrls,
  NATS_PROVISION_URL: natsUrls,
  REDIS_URL: redisUrl,
};

// The container's environment, with made-up values for secrets.
function environmentOf(workload: Any): Record<string, string> {
  const { env, envFrom = [] } = containerOf(workload);
  const maps = envFrom.map(({ configMapRef }: Any) => named("ConfigMap", configMapRef.name).data);
  const own = env.map(({ name, value, valueFrom }: Any) => [
    name,
    value ?? urls[name] ?? secrets[valueFrom.secretKeyRef.key],
  ]);
  return Object.assign({}, ...maps, Object.fromEntries(own));
}

for (const [name, { readConfig, schema }] of Object.entries(configs)) {
  Deno.test(`${name} can start with its manifest's settings, and its port is the one it listens on`, () => {
    const deployment = named("Deployment", name);
    const container = containerOf(deployment);
    const environment = environmentOf(deployment);
    const known = Object.keys(schema.shape).map(environmentName);
    assert.deepEqual(Object.keys(environment).filter((key) => !known.includes(key)), []);
    const config = readConfig((variable) => environment[variable]);
    assert.deepEqual(
      container.args,
      imageCommand(name as ServiceName, (variable) => environment[variable]),
    );
    assert.equal(config.http.hostname, "0.0.0.0");
    assert.deepEqual(container.ports, [{ name: "http", containerPort: config.http.port }]);
    const { spec } = named("Service", name);
    assert.deepEqual(spec.ports, [{ name: "http", port: config.http.port, targetPort: "http" }]);

    const pod = deployment.spec.template.spec;
    const stopSeconds = container.lifecycle.preStop.sleep.seconds + config.shutdownGraceMs / 1_000;
    assert.ok(pod.terminationGracePeriodSeconds > stopSeconds, `${stopSeconds} s`);
    assert.equal(container.startupProbe.httpGet.path, "/readyz");
    assert.equal(container.livenessProbe.httpGet.path, "/livez");
    assert.match(container.readinessProbe.httpGet.path, /^\/(livez|readyz)$/);
    assert.equal(pod.volumes.find(({ name }: Any) => name === "tmp").emptyDir.medium, "Memory");
  });
}

Deno.test("there are as many NATS nodes as copies of a stream, and the url names all of them", () => {
  const nats = named("StatefulSet", "nats");
  const { NATS_REPLICAS } = named("ConfigMap", "kenri").data;
  const config: string = named("ConfigMap", "nats").data["nats.conf"];
  const nodes = Array.from({ length: nats.spec.replicas }, (_, i) => `nats://nats-${i}.nats`);
  assert.equal(NATS_REPLICAS, `${nodes.length}`);
  assert.equal(natsUrls.replace(/\w+:\w+@/, ""), nodes.map((node) => `${node}:4222`).join());
  assert.ok(config.includes(`routes: [${nodes.map((node) => `${node}:6222`).join(", ")}]`));
  assert.equal(nats.spec.serviceName, named("Service", "nats").metadata.name);
  assert.equal(named("Service", "nats").spec.clusterIP, "None");
  const ports = containerOf(nats).ports.map(({ containerPort }: Any) => containerPort);
  assert.deepEqual(
    ports,
    [...config.matchAll(/(?:listen|http): [\d.]+:(\d+)/g)]
      .map(([, port]) => Number(port)).sort(),
  );
});

Deno.test("NATS has the users of deploy/nats-users.conf, and each service the url of its own user", () => {
  const { data } = named("ConfigMap", "nats");
  const users = Deno.readTextFileSync(new URL("../../deploy/nats-users.conf", folder));
  assert.equal(data["users.conf"], users);
  assert.match(data["nats.conf"], /^include users.conf$/m);
  const passwords = [...users.matchAll(/password: \$(\w+)/g)].map(([, name]) => name);
  const given = containerOf(named("StatefulSet", "nats")).env.map(({ name }: Any) => name);
  assert.deepEqual(passwords, given.filter((name: string) => name !== "POD_NAME"));
  for (const workload of workloads) {
    const { name } = workload.metadata;
    for (const { name: variable, valueFrom } of containerOf(workload).env) {
      if (!/^NATS_.*URL$/.test(variable)) continue;
      assert.equal(variable === "NATS_PROVISION_URL", name === "provision");
      assert.equal(valueFrom.secretKeyRef.name, `${name}-nats`);
    }
  }
});

Deno.test("Redis has the settings and users of deploy/, and only matchmaking has a url of it", () => {
  const { data } = named("ConfigMap", "redis");
  const redis = named("StatefulSet", "redis");
  for (const name of ["redis.conf", "redis.sh"]) {
    assert.equal(data[name], Deno.readTextFileSync(new URL(`../../deploy/${name}`, folder)));
  }
  const passwords = [...data["redis.sh"].matchAll(/>\$(\w+)/g)].map(([, name]) => name);
  assert.deepEqual(passwords, containerOf(redis).env.map(({ name }: Any) => name));
  const { containerPort } = containerOf(redis).ports[0];
  assert.equal(new URL(redisUrl).host, `redis:${containerPort}`);
  assert.match(data["redis.conf"], new RegExp(`^port ${containerPort}$`, "m"));
  assert.equal(containerOf(redis).workingDir, containerOf(redis).volumeMounts[0].mountPath);
  const having = workloads.filter((one) =>
    JSON.stringify(containerOf(one).env).includes("REDIS_URL")
  );
  assert.deepEqual(having.map(({ metadata }) => metadata.name), ["matchmaking"]);
});

Deno.test("the streams are made as the services want them", () => {
  const environment = environmentOf(named("Job", "provision"));
  const known = Object.keys(provisionSchema.shape).map(environmentName);
  const others = Object.keys(named("ConfigMap", "kenri").data);
  assert.deepEqual(
    Object.keys(environment).filter((key) => ![...known, ...others].includes(key)),
    [],
  );
  const { uses } = provisionConfig((name) => environment[name]);
  const deployed = Object.keys(uses).map((service) => environmentOf(named("Deployment", service)));
  const theirs = Object.assign({ NATS_URL: natsUrls }, ...deployed);
  assert.deepEqual(provisionConfig((name) => theirs[name]).uses, uses);
  assert.deepEqual(
    containerOf(named("Job", "provision")).args,
    imageCommand("provision", (variable) => environment[variable]),
  );
});

Deno.test("the migrations get the settings that they need, and only they get those of the owner", () => {
  const job = named("Job", "migrate");
  const environment = environmentOf(job);
  const ofOwner = withDatabase(services).map((service) => databaseUrlNames(service).owner);
  assert.equal(readDatabaseUrls((name) => environment[name]).length, ofOwner.length);
  assert.deepEqual(Object.keys(environment).filter((key) => key.includes("MIGRATION")), ofOwner);
  assert.deepEqual(
    containerOf(job).args,
    imageCommand("migrate", (variable) => environment[variable]),
  );
  for (const other of workloads.filter((workload) => workload !== job)) {
    assert.ok(!JSON.stringify(other).includes("database-owner"));
  }
});
