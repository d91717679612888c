// Each alert fires when it should, alone, and not in a healthy system. promtool evaluates the rules
// over some hours of figures.
import assert from "node:assert/strict";
import { healthy, intervalSeconds } from "./alert_figures.ts";
import { scenarios } from "./alert_scenarios.ts";
import { alerts, folder, promtool, promtoolOn, ruleFiles } from "./promtool.ts";

// An alert for a slow burn waits for an hour; the others fire within half of that.
const slowAlerts = new Set(alerts.filter((alert) => alert.for === "1h").map(({ alert }) => alert));
const isSudden = (fires: string[]) => fires.length > 0 && !fires.some((one) => slowAlerts.has(one));

const firing = 'ALERTS{alertstate="firing"}';
// In a sudden scenario a slow alert that has begun to wait counts as well: it would fire later.
const firingSoon = `${firing} or ALERTS{alertname=~"${[...slowAlerts].join("|")}"}`;

Deno.test("promtool accepts the rules and the configuration", async () => {
  await promtool("check", "rules", ...ruleFiles);
  await promtool("check", "config", "--syntax-only", `${folder}prometheus.yaml`);
});

Deno.test("each alert fires when it should, and no other with it", async () => {
  const tests = Object.entries(scenarios).map(([name, { fires, but, after }]) => ({
    name,
    interval: `${intervalSeconds}s`,
    input_series: Object.entries({ ...healthy, ...but })
      .filter(([, values]) => values !== "")
      .map(([series, values]) => ({ series, values })),
    promql_expr_test: [{
      expr: `count by (alertname) (${isSudden(fires) ? firingSoon : firing})`,
      eval_time: after ?? (isSudden(fires) ? "50m" : "100m"),
      exp_samples: fires.map((alertname) => ({ labels: `{alertname="${alertname}"}`, value: 1 })),
    }],
  }));
  await promtoolOn(
    { rule_files: ruleFiles, evaluation_interval: `${intervalSeconds}s`, tests },
    "test",
    "rules",
  );
});

Deno.test("every alert has a scenario", () => {
  const fired = new Set(Object.values(scenarios).flatMap(({ fires }) => fires));
  assert.deepEqual([...fired].sort(), alerts.map(({ alert }) => alert).sort());
});
