// `deno task metrics:page --check` keeps the tables of docs/metrics.md current; here they are compared
// with what the running services report.
import assert from "node:assert/strict";
import { read } from "../support/pages.ts";
import { grant } from "../support/api.ts";
import { samplesOf, type Scraped, scrapeOf, valueOf } from "../support/metrics.ts";
import { startSystem } from "../support/system.ts";
import { until } from "../../tools/servers/wait.ts";

interface Row {
  name: string;
  type: string;
  labels: string[];
}

function rowsOf(...headings: string[]): Row[] {
  const sections = read("docs/metrics.md").split(/^## /m)
    .filter((section) => headings.some((heading) => section.startsWith(`${heading}\n`)));
  const rows = sections.flatMap((section) => [...section.matchAll(/^\| `(\w+)` *\|(.*)$/gm)]);
  return rows.map(([, name = "", rest = ""]) => {
    const [type = "", labels = ""] = rest.split("|").map((cell) => cell.trim());
    return { name, type, labels: labels === "" ? [] : labels.split(", ") };
  });
}

function assertSame({ types, samples, ...scraped }: Scraped, rows: Row[]): void {
  assert.deepEqual([...types.keys()].sort(), rows.map(({ name }) => name).sort());
  for (const { name, type, labels } of rows) {
    assert.equal(types.get(name), type, name);
    const of = type === "histogram" ? `${name}_count` : name;
    for (const sample of samplesOf({ types, samples, ...scraped }, of)) {
      assert.deepEqual(Object.keys(sample.labels), labels, name);
    }
  }
}

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
  assertSame(await scrapeOf(entitlement), rowsOf("Entitlement", "Both services"));
  assertSame(await scrapeOf(notification), rowsOf("Notification", "Both services"));
});
