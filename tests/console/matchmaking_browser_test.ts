// The page of matchmaking in a real Chromium. KENRI_WRITE_DOCS=true writes its screenshot.
import assert from "node:assert/strict";
import { until } from "../../tools/servers/wait.ts";
import { root } from "../../tools/root.ts";
import { inBrowser } from "../support/browser.ts";
import { chromiumStack } from "../support/chromium_stack.ts";
import { lowContrasts } from "../support/contrasts.ts";
import { joined, startMatchmaking } from "../support/matchmaking.ts";

const picture = `${root}docs/console/matchmaking.png`;
const write = Deno.env.get("KENRI_WRITE_DOCS") === "true";
const services = chromiumStack(() =>
  startMatchmaking({ MATCHMAKING_DEBUG_ENABLED: "true", MATCHMAKING_TICKET_TTL: "8s" })
);

inBrowser(
  "the page of matchmaking has no errors, is readable, and its screenshot is small",
  async () => {
    const service = services.stack;
    await joined(service, "dara");
    if (write) await someTraffic();
    const id = await joined(service, "ann", { mode: "rank", attributes: { region: "eu" } });
    const url = `${service.url}/console/matchmaking?ticket_id=${id}`;
    for (const dark of [false, true]) {
      await services.withTab(async (tab) => {
        await tab.goto(url);
        assert.deepEqual(await tab.evaluate(lowContrasts), []);
        assert.deepEqual(tab.problems, []);
        await tab.goto(`${service.url}/console`);
        await until("it is live", () => tab.evaluate("document.body.innerText.includes('Live: ')"));
        assert.deepEqual(tab.problems, []);
      }, { dark });
    }
    await joined(service, "bob", { mode: "rank" });
    await until(
      "it is published",
      async () => await service.redis("XLEN", "mm:{rank}:events") === 0,
    );
    await services.withTab(async (tab) => {
      await tab.goto(url);
      if (write) {
        await Deno.writeFile(picture, await tab.screenshot());
      }
    }, { width: 1100, height: 1420 });
    assert.ok((await Deno.stat(picture)).size < 150_000);
  },
);

async function someTraffic(): Promise<void> {
  for (let i = 0; i < 200; i++) {
    await joined(services.stack, `user-${i}`, { mode: i % 3 ? "casual" : "rank" });
    await new Promise((over) => setTimeout(over, i % 20 ? 10 : 300));
  }
}
