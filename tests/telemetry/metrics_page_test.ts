// `deno task metrics:page --check` keeps the tables of docs/metrics.md current; here they are
// compared with what the running services report.
import assert from "node:assert/strict";
import { type Metric, metricsBelow } from "../support/pages.ts";
import { resolve, startAccount } from "../support/account.ts";
import { grant } from "../support/api.ts";
import { samplesOf, type Scraped, scrapeOf, valueOf } from "../support/metrics.ts";
import { startSystem } from "../support/system.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("the page of metrics has every metric that the services report, and no other", async () => {
  await using system = await startSystem({ replicas: 1 });
  const [entitlement] = system.replicas.entitlement;
  const [notification] = system.replicas.notification;
  assert.ok(entitlement && notification);
  assert.equal((await grant(entitlement.url)).status, 200);
  await until("it is sent", async () => {
    const sent = await scrapeOf(notification);
    return valueOf(sent, "notification_delivery_total", { result: "sent" }) === 1;
  });
  assertReports(await scrapeOf(entitlement), metricsBelow("Entitlement", "All services"));
  assertReports(
    await scrapeOf(notification),
    metricsBelow("Notification", "Orders and endpoints", "All services"),
  );
});

Deno.test("the page of metrics has every metric that account reports, and no other", async () => {
  await using account = await startAccount();
  await resolve(account, { provider: "p", subject: "s" });
  assertReports(await scrapeOf(account), metricsBelow("Account", "All services"));
});

function assertReports(scraped: Scraped, metrics: Metric[]): void {
  assert.deepEqual([...scraped.types.keys()].sort(), metrics.map(({ name }) => name).sort());
  for (const { name, type, labels } of metrics) {
    assert.equal(scraped.types.get(name), type, name);
    for (const sample of samplesOf(scraped, type === "histogram" ? `${name}_count` : name)) {
      assert.deepEqual(Object.keys(sample.labels), labels, name);
    }
  }
}
