// The manifests in docs/kubernetes fit together, and with the services as they are. (That each is
// what Kubernetes takes is for `deno task kubernetes:check`.)
import assert from "node:assert/strict";
import { parseAllDocuments } from "yaml";
import {
  readConfig as entitlementConfig,
  schema as entitlementSchema,
} from "../entitlement/config.ts";
import { readDatabaseUrls } from "../migrations/config.ts";
import {
  readConfig as notificationConfig,
  schema as notificationSchema,
} from "../notification/config.ts";
import { environmentName } from "../shared/config.ts";
import {
  readConfig as provisionConfig,
  schema as provisionSchema,
} from "../tools/provision/config.ts";
import type { ServiceName } from "../tools/services.ts";
import { imageCommand } from "./image.ts";

// deno-lint-ignore no-explicit-any
type Any = any;

const folder = new URL("../docs/kubernetes/", import.meta.url);
const manifests: Any[] = [];
for (const { name } of Deno.readDirSync(folder)) {
  const documents = parseAllDocuments(Deno.readTextFileSync(new URL(name, folder)));
  manifests.push(...documents.map((document) => document.toJS()));
}
const ofKind = (...kinds: string[]) => manifests.filter(({ kind }) => kinds.includes(kind));
const workloads = ofKind("Deployment", "StatefulSet", "Job");
const named = (kind: string, name: string) => {
  const found = ofKind(kind).find(({ metadata }) => metadata.name === name);
  assert.ok(found, `There is no ${kind} ${name}`);
  return found;
};
const containerOf = ({ spec }: Any) => {
  assert.equal(spec.template.spec.containers.length, 1);
  return spec.template.spec.containers[0];
};
const labelsOf = ({ spec }: Any) => spec.template.metadata.labels;

// As Kubernetes does it: every pair and every expression; an empty selector takes all.
function selects(selector: Any, labels: Record<string, string>): boolean {
  const pairs = Object.entries(selector.matchLabels ?? {});
  const expressions: Any[] = selector.matchExpressions ?? [];
  return pairs.every(([key, value]) => labels[key] === value) &&
    expressions.every(({ key, operator, values }) => {
      assert.equal(operator, "In");
      return values.includes(labels[key]);
    });
}

// As the guide says to put it into the secrets.
const guide = Deno.readTextFileSync(new URL("../deploy.md", folder));
const natsUrls = /--from-literal=url='(nats:.*)'/.exec(guide)?.[1] ?? "";

const databaseUrl = /--from-literal=url='(postgres:.*)'/.exec(guide)?.[1] ?? "";

const secrets: Record<string, string> = {
  key: "k".repeat(32),
  url: databaseUrl,
  "entitlement-url": databaseUrl,
  "notification-url": databaseUrl,
  tokens: `shop sha256:${"0".repeat(64)} entitlements:write`,
};

// The container's environment; secrets as values that only look like those.
function environmentOf(workload: Any): Record<string, string> {
  const { env, envFrom = [] } = containerOf(workload);
  const maps = envFrom.map(({ configMapRef }: Any) => named("ConfigMap", configMapRef.name).data);
  const own = env.map(({ name, value, valueFrom }: Any) => [
    name,
    value ??
      (name === "NATS_URL" || name === "NATS_PROVISION_URL"
        ? natsUrls
        : secrets[valueFrom.secretKeyRef.key]),
  ]);
  return Object.assign({}, ...maps, Object.fromEntries(own));
}

const services = {
  entitlement: { readConfig: entitlementConfig, schema: entitlementSchema },
  notification: { readConfig: notificationConfig, schema: notificationSchema },
};

for (const [name, { readConfig, schema }] of Object.entries(services)) {
  Deno.test(`${name} can start with its manifest's settings, and is found where it listens`, () => {
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

Deno.test("there are as many nodes of NATS as copies of a stream, and all are named", () => {
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

Deno.test("NATS knows the users of deploy/nats-users.conf, and each service the url of its own", () => {
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

Deno.test("the streams are made as the services want them", () => {
  const environment = environmentOf(named("Job", "provision"));
  const known = Object.keys(provisionSchema.shape).map(environmentName);
  const others = Object.keys(named("ConfigMap", "kenri").data);
  assert.deepEqual(
    Object.keys(environment).filter((key) => ![...known, ...others].includes(key)),
    [],
  );
  const { published, consumed } = provisionConfig((name) => environment[name]);
  const configOf = (name: keyof typeof services) => {
    const settings = environmentOf(named("Deployment", name));
    return (variable: string) => settings[variable];
  };
  const { stream, consumer, advisories } = notificationConfig(configOf("notification"));
  assert.deepEqual(published, entitlementConfig(configOf("entitlement")).stream);
  assert.deepEqual(consumed, { stream, consumer, advisories });
  assert.deepEqual(
    containerOf(named("Job", "provision")).args,
    imageCommand("provision", (variable) => environment[variable]),
  );
});

Deno.test("the migrations get the settings they ask for, and only they get the owner's", () => {
  const job = named("Job", "migrate");
  const environment = environmentOf(job);
  assert.equal(readDatabaseUrls((name) => environment[name]).length, 2);
  assert.deepEqual(Object.keys(environment).filter((key) => key.includes("MIGRATION")).length, 2);
  assert.deepEqual(
    containerOf(job).args,
    imageCommand("migrate", (variable) => environment[variable]),
  );
  for (const other of workloads.filter((workload) => workload !== job)) {
    assert.ok(!JSON.stringify(other).includes("database-owner"));
  }
});

Deno.test("selectors find the pods they mean, and no others", () => {
  for (const { spec, metadata, kind } of workloads) {
    if (kind !== "Job") assert.ok(selects(spec.selector, labelsOf({ spec })), metadata.name);
  }
  const targets = [
    ...ofKind("Service").map(({ metadata, spec }) => ({
      name: metadata.name,
      selector: { matchLabels: spec.selector },
    })),
    ...ofKind("PodDisruptionBudget").map(({ metadata, spec }) => ({
      name: metadata.name,
      selector: spec.selector,
    })),
  ];
  assert.equal(targets.length, 6);
  for (const { name, selector } of targets) {
    const found = workloads.filter((workload) => selects(selector, labelsOf(workload)));
    assert.deepEqual(found.map(({ metadata }) => metadata.name), [name]);
  }
});

Deno.test("every service can lose a pod on purpose without going away", () => {
  for (const { metadata, spec } of ofKind("Deployment", "StatefulSet")) {
    const budget = named("PodDisruptionBudget", metadata.name).spec;
    assert.ok(spec.replicas >= 2 && budget.minAvailable >= 1, metadata.name);
    assert.ok(budget.minAvailable < spec.replicas, metadata.name);
  }
  const nats = named("StatefulSet", "nats").spec.replicas;
  assert.ok(named("PodDisruptionBudget", "nats").spec.minAvailable > nats / 2, "a majority");
});

Deno.test("no pod has more rights than it needs", () => {
  for (const workload of workloads) {
    const { metadata, spec: { template: { spec: pod } } } = workload;
    const container = containerOf(workload);
    assert.equal(pod.automountServiceAccountToken, false, metadata.name);
    assert.equal(pod.securityContext.runAsNonRoot, true);
    assert.ok(pod.securityContext.runAsUser > 0);
    assert.equal(pod.securityContext.seccompProfile.type, "RuntimeDefault");
    assert.deepEqual(container.securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    assert.ok(container.resources.requests.cpu && container.resources.requests.memory);
    assert.ok(container.resources.limits.memory);
    assert.match(container.image, /:\d+\.\d+\.\d+/);
    const mounted = container.volumeMounts.map(({ name }: Any) => name).sort();
    const volumes = [...pod.volumes ?? [], ...workload.spec.volumeClaimTemplates ?? []];
    assert.deepEqual(mounted, volumes.map((v: Any) => v.name ?? v.metadata.name).sort());
    assert.ok(pod.hostNetwork === undefined && pod.hostPID === undefined);
  }
  assert.doesNotMatch(JSON.stringify(manifests), /:\/\/[^/"@ ]+:[^/"@ ]+@/, "a password");
});

Deno.test("the network lets through what is needed, and NATS hears only the services", () => {
  const policies = ofKind("NetworkPolicy").map(({ spec }) => spec);
  const ports = (workload: Any, direction: "ingress" | "egress") =>
    policies.filter(({ podSelector }) => selects(podSelector, labelsOf(workload)))
      .flatMap((policy) => policy[direction] ?? [])
      .flatMap((rule: Any) => rule.ports).map(({ port }: Any) => port)
      .sort((a: number, b: number) => a - b);
  const found = Object.fromEntries(workloads.map((workload) => [
    workload.metadata.name,
    [ports(workload, "ingress"), ports(workload, "egress")],
  ]));
  assert.deepEqual(found, {
    entitlement: [[8080, 8080, 8081], [53, 53, 4222, 5432]],
    notification: [[8080, 8081], [53, 53, 4222, 5432]],
    migrate: [[], [53, 53, 5432]],
    provision: [[], [53, 53, 4222]],
    nats: [[4222, 6222], [53, 53, 6222]],
  });
  const denied = policies.find(({ ingress, egress }) => !ingress && !egress);
  assert.deepEqual(denied, { podSelector: {}, policyTypes: ["Ingress", "Egress"] });
  const [clients] = named("NetworkPolicy", "nats").spec.ingress;
  const heard = workloads.filter((workload) =>
    clients.from.some(({ podSelector }: Any) => selects(podSelector, labelsOf(workload)))
  );
  const clientNames = [...Object.keys(services), "provision"];
  assert.deepEqual(heard.map(({ metadata }) => metadata.name).sort(), clientNames);
});

Deno.test("all is in one namespace, and what is referred to is there or in the guide", () => {
  for (const { kind, metadata } of manifests) {
    if (kind !== "Namespace") assert.equal(metadata.namespace, "kenri", metadata.name);
  }
  const secrets = JSON.stringify(workloads).matchAll(
    /"secretKeyRef":{"name":"([\w-]+)","key":"([\w-]+)"/g,
  );
  for (const [, name, key] of secrets) {
    assert.match(guide, new RegExp(`create secret generic ${name}\\b`));
    assert.match(guide, new RegExp(`--from-literal=${key}=`));
  }
  for (const { name } of Deno.readDirSync(folder)) assert.ok(guide.includes(name), name);
});
