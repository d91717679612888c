import assert from "node:assert/strict";
import { Histogram } from "./histogram.ts";
import { metrics } from "./metrics.ts";

Deno.test("each bucket counts the values up to its bound, and the last one counts all", async () => {
  const histogram = new Histogram("h_seconds", "help", ["phase"], [0.1, 1]);
  const series = histogram.labels("work");
  for (const value of [0.05, 0.1, 0.5, 7]) series.observe(value);
  assert.equal(histogram.labels("work"), series);
  metrics.registerMetric(histogram as never);
  assert.match(
    await metrics.metrics(),
    new RegExp([
      "# HELP h_seconds help",
      "# TYPE h_seconds histogram",
      'h_seconds_bucket{phase="work",le="0.1"} 2',
      'h_seconds_bucket{phase="work",le="1"} 3',
      'h_seconds_bucket{phase="work",le="\\+Inf"} 4',
      'h_seconds_sum{phase="work"} 7.65',
      'h_seconds_count{phase="work"} 4',
    ].join("\n")),
  );
  metrics.removeSingleMetric("h_seconds");
});
