// The manifests in docs/kubernetes, and the guide to them in docs/deploy.md.
import assert from "node:assert/strict";
import { parseAllDocuments } from "yaml";

// deno-lint-ignore no-explicit-any
export type Any = any;

export const folder = new URL("../../docs/kubernetes/", import.meta.url);
export const manifests: Any[] = [];
for (const { name } of Deno.readDirSync(folder)) {
  const documents = parseAllDocuments(Deno.readTextFileSync(new URL(name, folder)));
  manifests.push(...documents.map((document) => document.toJS()));
}
export const ofKind = (...kinds: string[]): Any[] =>
  manifests.filter(({ kind }) => kinds.includes(kind));
export const workloads = ofKind("Deployment", "StatefulSet", "Job");
export const named = (kind: string, name: string): Any => {
  const found = ofKind(kind).find(({ metadata }) => metadata.name === name);
  assert.ok(found, `There is no ${kind} ${name}`);
  return found;
};
export const containerOf = ({ spec }: Any): Any => {
  assert.equal(spec.template.spec.containers.length, 1);
  return spec.template.spec.containers[0];
};
export const labelsOf = ({ spec }: Any): Record<string, string> => spec.template.metadata.labels;

// Matches like Kubernetes: every pair and every expression must match; an empty selector matches
// all.
export function selects(selector: Any, labels: Record<string, string>): boolean {
  const pairs = Object.entries(selector.matchLabels ?? {});
  const expressions: Any[] = selector.matchExpressions ?? [];
  return pairs.every(([key, value]) => labels[key] === value) &&
    expressions.every(({ key, operator, values }) => {
      assert.equal(operator, "In");
      return values.includes(labels[key]);
    });
}

export const guide = Deno.readTextFileSync(new URL("../deploy.md", folder));
