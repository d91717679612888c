import { RequestSlot, Slots } from "@kenri/shared/http/slots.ts";
import { Hono } from "hono";
import assert from "node:assert/strict";
import { addressOf } from "./address.ts";

async function addressIn(header: string | undefined, trustedProxies: number): Promise<string> {
  const app = new Hono().get("/", (context) => context.text(addressOf(context, trustedProxies)));
  const headers: Record<string, string> = header === undefined ? {} : { "X-Forwarded-For": header };
  const request = new Request("http://localhost/", { headers });
  const answer = await app.fetch(request, new RequestSlot(new Slots(10), "10.0.0.9"));
  return await answer.text();
}

Deno.test("without trusted proxies X-Forwarded-For is not believed", async () => {
  for (const header of [undefined, "1.1.1.1", "1.1.1.1, 2.2.2.2", "", ","]) {
    assert.equal(await addressIn(header, 0), "10.0.0.9", `${header}`);
  }
});

Deno.test("each trusted proxy is believed one entry, and what clients write before those is not", async () => {
  const cases: [header: string | undefined, trusted: number, address: string][] = [
    ["1.1.1.1", 1, "1.1.1.1"],
    ["6.6.6.6, 1.1.1.1", 1, "1.1.1.1"],
    ["6.6.6.6, 1.1.1.1, 10.0.0.2", 2, "1.1.1.1"],
    ["6.6.6.6,1.1.1.1 , 10.0.0.2", 2, "1.1.1.1"],
    ["1.1.1.1", 2, "1.1.1.1"],
    [undefined, 1, "10.0.0.9"],
    ["", 1, "10.0.0.9"],
    [" , ", 2, "10.0.0.9"],
  ];
  for (const [header, trusted, address] of cases) {
    assert.equal(await addressIn(header, trusted), address, `${trusted} of "${header}"`);
  }
});

Deno.test("the port that some proxies write is left out", async () => {
  const cases = { "1.1.1.1:5000": "1.1.1.1", "[2001:db8::1]:5000": "2001:db8::1" };
  const plain = { "[2001:db8::1]": "2001:db8::1", "2001:db8::1": "2001:db8::1" };
  for (const [entry, address] of Object.entries({ ...cases, ...plain })) {
    assert.equal(await addressIn(entry, 1), address, entry);
  }
});
