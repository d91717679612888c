// The rules, the dashboard and the pages use only metrics and labels of docs/metrics.md, and valid
// PromQL.
import assert from "node:assert/strict";
import {
  codeIn,
  dashboard,
  type Metric,
  metricsBelow,
  panelQueries,
  promqlOfPages,
  read,
  yamlOf,
} from "../support/pages.ts";
import { alerts, promtoolOn, records } from "./promtool.ts";

const metrics = new Map(
  metricsBelow(
    ...[
      "Entitlement",
      "Notification",
      "Sender",
      "Account",
      "Gateway",
      "Matchmaking",
      "Redis",
      "Asking other services",
    ],
    ...["Orders and endpoints", "All services"],
  ).map((metric) => [metric.name, metric]),
);

// Labels that Prometheus and the rules add.
const ownLabels = ["job", "instance", "le", "slo", "alertstate", "failure_mode"];
const recorded = new Set(records.map(({ record }) => record));
const functions = /^(histogram_quantile|(avg|min|sum)_over_time)$/;

const everywhere = [
  ...records.map(({ record, expr }) => ({ title: record, expr })),
  ...alerts.map(({ alert, expr }) => ({ title: alert, expr })),
  ...panelQueries,
  ...promqlOfPages,
].map(({ title, expr }) => ({ title, expr: expr.replaceAll(/"[^"]*"/g, '""') }));

function metricOf(name: string): Metric | undefined {
  const [, base = "", end] = name.match(/^(.*?)(_bucket|_count|_sum)?$/) ?? [];
  const metric = metrics.get(end ? base : name);
  return (metric?.type === "histogram") === (end !== undefined) ? metric : undefined;
}

Deno.test("every metric in PromQL is in docs/metrics.md, with its type", () => {
  assert.ok(metrics.size > 0);
  for (const { title, expr } of everywhere) {
    const withoutLabels = expr.replaceAll(/\{[^}]*\}|\b(by|on) \([^)]*\)/g, " ");
    for (const name of withoutLabels.match(/\bkenri:[\w:]+|\b[a-z]\w*_\w+/g) ?? []) {
      if (functions.test(name)) continue;
      assert.ok(recorded.has(name) || metricOf(name), `${name} in "${title}"`);
    }
  }
});

Deno.test("every label in PromQL is one of its metric", () => {
  for (const { title, expr } of everywhere) {
    for (const [, name = "", selector = ""] of expr.matchAll(/(\w+)\{([^}]*)\}/g)) {
      const known = [...(metricOf(name)?.labels ?? []), ...ownLabels];
      for (const label of selector.match(/\w+/g) ?? []) {
        assert.ok(known.includes(label), `${name}{${label}} in "${title}"`);
      }
    }
    const named = (expr.match(/\w+_\w+/g) ?? []).flatMap((name) => metricOf(name)?.labels ?? []);
    for (const [, list = ""] of expr.matchAll(/\b(?:by|on) \(([\w, ]*)\)/g)) {
      for (const label of list.match(/\w+/g) ?? []) {
        assert.ok([...named, ...ownLabels].includes(label), `by (${label}) in "${title}"`);
      }
    }
  }
});

Deno.test("the metrics that the pages name are in docs/metrics.md", () => {
  for (const page of ["failure-modes", "slo", "runbook"]) {
    for (const code of codeIn(read(`docs/${page}.md`))) {
      if (!/^(kenri|entitlement|notification|account|gateway|process)_\w+$/.test(code)) continue;
      if (!tables.includes(code)) assert.ok(metrics.has(code), `${code} in ${page}.md`);
    }
  }
});
const tables = ["notification_id", "notification_dlq", "notification_nats_dlq"];

Deno.test("Prometheus can read each query of the dashboard and of the pages", async () => {
  const queries = [...panelQueries, ...promqlOfPages];
  await promtoolOn(
    {
      groups: [{
        name: "queries",
        rules: queries.map(({ expr }, i) => ({
          record: `query${i}`,
          expr: expr.replaceAll("$__rate_interval", "1m"),
        })),
      }],
    },
    "check",
    "rules",
  );
});

Deno.test("each panel of the dashboard has a place of its own, and an existing source", () => {
  const { datasources } = yamlOf("deploy/observability/grafana/datasources.yaml");
  const uids = datasources.map(({ uid }: { uid: string }) => uid);
  const taken = new Set<string>();
  for (const { title, type, datasource, gridPos: { x, y, w, h } } of dashboard.panels) {
    if (type !== "row") assert.ok(uids.includes(datasource?.uid), title);
    assert.ok(x + w <= 24, title);
    for (let column = x; column < x + w; column++) {
      for (let line = y; line < y + h; line++) {
        assert.ok(!taken.has(`${column} ${line}`), `"${title}" covers another panel`);
        taken.add(`${column} ${line}`);
      }
    }
  }
  const ids = dashboard.panels.map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length);
});
