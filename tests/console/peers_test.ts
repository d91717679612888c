// Three consoles that link to each other, one of them of a service with two queues.
import assert from "node:assert/strict";
import { startParcels } from "../operators/parcel_service.ts";
import { ask, startEntitlement } from "../support/entitlement.ts";
import { grant } from "../support/api.ts";

const peers = "notification=http://127.0.0.1:2/two, parcel=https://kenri.example";

async function page(url: string): Promise<string> {
  const answer = await fetch(url);
  const html = await answer.text();
  assert.equal(answer.status, 200, html);
  return html;
}

Deno.test("a console links to every peer, by its name", async () => {
  await using kenri = await startEntitlement({
    ENTITLEMENT_DEBUG_ENABLED: "true",
    ENTITLEMENT_CONSOLE_PEER_URL: peers,
  });
  const first = await page(`${kenri.url}/console`);
  assert.match(
    first,
    /<a class="peer" href="http:\/\/127\.0\.0\.1:2\/two\/console">notification ↗/,
  );
  assert.match(first, /<a class="peer" href="https:\/\/kenri\.example\/console">parcel ↗/);
  await grant(kenri.url, { user_id: "ann" });
  const timeline = await page(`${kenri.url}/console/timeline?by=user_id&q=ann`);
  assert.match(
    timeline,
    /href="https:\/\/kenri\.example\/console\/timeline\?by=user_id&amp;q=ann"/,
  );
  assert.match(timeline, />All events of this user in notification ↗</);
  assert.match(timeline, />Continue in parcel ↗</);
});

Deno.test("the console of a third service shows its queues, its steps and its dead letters", async () => {
  await using parcels = await startParcels([{ name: "entitlement", url: "http://127.0.0.1:2" }]);
  const event_id = crypto.randomUUID();
  await ask(
    parcels.ownerUrl,
    `insert into parcels (event_id, user_id, status, last_error)
     values ($1, 'ann', 'FAILED', 'torn')`,
    [event_id],
  );
  await ask(parcels.ownerUrl, "insert into returns (event_id) values ($1)", [event_id]);
  const pipeline = await page(`${parcels.url}/console`);
  const [, packing, returns] = pipeline.split('<li class="stage">');
  assert.match(packing ?? "", /<h2>Packing<\/h2><p class="muted">Parcels waiting to be packed\.</);
  assert.match(packing ?? "", /<dt>dead letters<\/dt><dd>1</);
  assert.match(returns ?? "", /<h2>Returns<\/h2><p class="muted">Items waiting to be unpacked\.</);
  assert.match(returns ?? "", /<dt>waiting<\/dt><dd>1<.*<dt>dead letters<\/dt><dd>0</);
  assert.match(pipeline, /1 dead letter needs attention/);
  assert.match(pipeline, /aria-label="The items that have waited longest"/);
  assert.match(pipeline, /<a class="peer" href="http:\/\/127\.0\.0\.1:2\/console">entitlement ↗/);
  const timeline = await page(`${parcels.url}/console/timeline?by=event_id&q=${event_id}`);
  assert.match(timeline, /ORDERED[^]*Somebody ordered a parcel\./);
  const dead = await page(`${parcels.url}/console/dead-letters`);
  assert.match(dead, /<h2>Layer parcel<\/h2><p class="muted">Parcels that nobody could pack\./);
});
