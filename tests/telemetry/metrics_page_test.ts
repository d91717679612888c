// A running service shows the metrics that docs/metrics.md has in its tables, which
// `deno task metrics:page` writes from their declarations.
import assert from "node:assert/strict";
import { grant } from "../support/api.ts";
import { samplesOf, type Scraped, scrapeOf, valueOf } from "../support/metrics.ts";
import { metricsUnder } from "../support/pages.ts";
import { startSystem } from "../support/system.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("each service shows the metrics on its page and no others, with these labels", async () => {
  await using system = await startSystem({ replicas: 1 });
  const [entitlement] = system.replicas.entitlement;
  const [notification] = system.replicas.notification;
  assert.ok(entitlement && notification);
  assert.equal((await grant(entitlement.url)).status, 200);
  await until("it is sent", async () => {
    const sent = await scrapeOf(notification);
    return valueOf(sent, "notification_delivery_total", { result: "sent" }) === 1;
  });
  assertShows(await scrapeOf(entitlement), "Entitlement");
  assertShows(await scrapeOf(notification), "Notification");
});

function assertShows(scraped: Scraped, heading: string): void {
  const wanted = [...metricsUnder(heading), ...metricsUnder("Both")];
  assert.deepEqual([...scraped.types.keys()].sort(), wanted.map(({ name }) => name).sort());
  for (const { name, type, labels } of wanted) {
    const samples = samplesOf(scraped, type === "histogram" ? `${name}_count` : name);
    for (const sample of samples) assert.deepEqual(Object.keys(sample.labels), labels, name);
  }
}
