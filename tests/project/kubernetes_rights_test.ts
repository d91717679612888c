// The manifests in docs/kubernetes select and allow what they must, and nothing else.
import assert from "node:assert/strict";
import * as services from "../../services.ts";
import { deniedHosts } from "../../shared/net/public_addresses.ts";
import type { Service } from "../../shared/process/program.ts";
import { serviceNames } from "../../tools/services.ts";
import {
  type Any,
  containerOf,
  folder,
  guide,
  labelsOf,
  manifests,
  named,
  ofKind,
  selects,
  workloads,
} from "./manifests.ts";

Deno.test("selectors match the intended pods, and no others", () => {
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
  assert.equal(targets.length, 2 * (serviceNames.length + 1) + 1); // and NATS, and the Service of Redis
  for (const { name, selector } of targets) {
    const found = workloads.filter((workload) => selects(selector, labelsOf(workload)));
    assert.deepEqual(found.map(({ metadata }) => metadata.name), [name]);
  }
});

Deno.test("everything but Redis can lose a pod to an eviction and stay available", () => {
  for (const { metadata, spec } of ofKind("Deployment", "StatefulSet")) {
    // A budget for a single pod would keep its node from being drained.
    if (metadata.name === "redis") continue;
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

Deno.test("the network policy allows only what is needed, and only the services reach NATS", () => {
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
  const fromCallers = [8000, 8080, 8081, 8082, 8083];
  const fromMonitoring = [...fromCallers, 8084];
  const behind = [8080, 8081, 8082, 8083];
  const sorted = (...ports: number[]) => ports.sort((a, b) => a - b);
  const asked = sorted(...fromCallers, ...fromMonitoring, ...behind);
  assert.deepEqual(found, {
    account: [asked, [53, 53, 4222, 5432]],
    entitlement: [asked, [53, 53, 4222, 5432]],
    gateway: [sorted(...fromCallers, ...fromMonitoring), [53, 53, 443, 4222, ...behind]],
    matchmaking: [asked, [53, 53, 4222, 6379]],
    notification: [asked, [53, 53, 4222, 5432, 8084]],
    sender: [sorted(...fromMonitoring, 8084), [53, 53, 443, 8443]],
    migrate: [[], [53, 53, 5432]],
    provision: [[], [53, 53, 4222]],
    nats: [[4222, 6222], [53, 53, 6222]],
    redis: [[6379], [53, 53]],
  });
  const denied = policies.find(({ ingress, egress }) => !ingress && !egress);
  assert.deepEqual(denied, { podSelector: {}, policyTypes: ["Ingress", "Egress"] });
  const [clients] = named("NetworkPolicy", "nats").spec.ingress;
  const heard = workloads.filter((workload) =>
    clients.from.some(({ podSelector }: Any) => selects(podSelector, labelsOf(workload)))
  );
  const users = Object.values<Service>(services).filter(({ usesNats }) => usesNats);
  const clientNames = [...users.map(({ name }) => name), "provision"];
  assert.deepEqual(heard.map(({ metadata }) => metadata.name).sort(), clientNames.sort());
  assert.deepEqual(whoFrom(named("NetworkPolicy", "redis").spec.ingress[0]), ["matchmaking"]);
});

Deno.test("the sender may reach what is public, and only notification may call it", () => {
  const { ingress, egress: [outward] } = named("NetworkPolicy", "sender").spec;
  assertOnlyPublic(outward);
  assert.deepEqual(whoFrom(ingress[0]), ["notification"]);
});

Deno.test("the gateway may reach what is public and the services behind it, which know it as a caller", () => {
  const { egress: [inward, outward] } = named("NetworkPolicy", "gateway").spec;
  assertOnlyPublic(outward);
  const selected = (rule: Any) =>
    workloads.filter((workload) => selects(rule, labelsOf(workload)))
      .map(({ metadata }) => metadata.name).sort();
  const behind = ["account", "entitlement", "matchmaking", "notification"];
  assert.deepEqual(inward.to.flatMap(({ podSelector }: Any) => selected(podSelector)), behind);
  const { podSelector, ingress } = named("NetworkPolicy", "from-gateway").spec;
  assert.deepEqual(selected(podSelector), behind);
  assert.deepEqual(whoFrom(ingress[0]), ["gateway"]);
});

function assertOnlyPublic({ to }: Any) {
  const [v4] = to.map(({ ipBlock }: Any) => ipBlock);
  assert.equal(v4.cidr, "0.0.0.0/0");
  const denied = deniedHosts([]).filter((host) => !host.includes(":"))
    .map((host) => host.includes("/") ? host : `${host}/32`);
  assert.deepEqual(v4.except, denied);
}

function whoFrom({ from }: Any): string[] {
  const heard = workloads.filter((workload) =>
    from.some(({ podSelector }: Any) => selects(podSelector, labelsOf(workload)))
  );
  return heard.map(({ metadata }) => metadata.name);
}

Deno.test("all objects are in one namespace, and each reference is in the manifests or in the guide", () => {
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
