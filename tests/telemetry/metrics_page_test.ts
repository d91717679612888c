// docs/metrics.md names every metric of both services, with its type, labels, buckets and meaning.
import assert from "node:assert/strict";
import { delaySeconds, shortSeconds } from "../../shared/telemetry/metrics.ts";
import { grant } from "../support/api.ts";
import { samplesOf, type Scraped, scrapeOf, valueOf } from "../support/metrics.ts";
import { startSystem } from "../support/system.ts";
import { until } from "../../tools/servers/wait.ts";

const page = await Deno.readTextFile(new URL("../../docs/metrics.md", import.meta.url));
const bucketsOf: Record<string, number[]> = { short: shortSeconds, delay: delaySeconds };

interface Described {
  name: string;
  type: string;
  labels: string[];
  buckets: string;
  meaning: string;
}

function described(...headings: string[]): Described[] {
  const sections = page.split(/^## /m).filter((section) => headings.includes(firstLine(section)));
  return sections.flatMap((section) => section.split("\n"))
    .filter((line) => line.startsWith("| `"))
    .map((line) => {
      const [, name = "", type = "", labels = "", buckets = "", meaning = ""] = line.split("|")
        .map((cell) => cell.trim());
      return {
        name: name.replaceAll("`", ""),
        type,
        labels: labels === "" ? [] : labels.split(", "),
        buckets,
        meaning,
      };
    });
}

const firstLine = (text: string) => text.split("\n", 1)[0] ?? "";

function assertSame(scraped: Scraped, wanted: Described[]): void {
  assert.deepEqual([...scraped.types.keys()].sort(), wanted.map(({ name }) => name).sort());
  for (const { name, type, labels, buckets, meaning } of wanted) {
    assert.equal(scraped.types.get(name), type, name);
    assert.equal(scraped.helps.get(name), meaning, name);
    const plain = samplesOf(scraped, type === "histogram" ? `${name}_count` : name);
    for (const sample of plain) assert.deepEqual(Object.keys(sample.labels), labels, name);
    if (type !== "histogram") continue;
    const bounds = new Set(samplesOf(scraped, `${name}_bucket`).map(({ labels }) => labels["le"]));
    assert.deepEqual([...bounds], [...(bucketsOf[buckets] ?? []).map(String), "+Inf"], name);
  }
}

Deno.test("the page of metrics says what both services tell, and nothing else", async () => {
  await using system = await startSystem({ replicas: 1 });
  const [entitlement] = system.replicas.entitlement;
  const [notification] = system.replicas.notification;
  assert.ok(entitlement && notification);
  assert.equal((await grant(entitlement.url)).status, 200);
  await until("it is sent", async () => {
    const sent = await scrapeOf(notification);
    return valueOf(sent, "notification_delivery_total", { result: "sent" }) === 1;
  });
  assertSame(await scrapeOf(entitlement), described("Entitlement", "Both"));
  assertSame(await scrapeOf(notification), described("Notification", "Both"));
});

Deno.test("the page of metrics lists the buckets as they are", () => {
  for (const [name, bounds] of Object.entries(bucketsOf)) {
    assert.ok(page.includes(`- **${name}**: ${bounds.join(", ")}\n`), name);
  }
});
