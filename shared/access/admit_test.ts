import assert from "node:assert/strict";
import { Hono } from "hono";
import { RequestSlot, Slots } from "../http/slots.ts";
import { admit } from "./admit.ts";
import type { Caller } from "./caller.ts";
import type { Authenticator } from "./authenticator.ts";

const ann: Caller = { name: "ann", scopes: new Set() };

Deno.test("a request refused while its credential is checked takes no slot when the credential turns out valid", async () => {
  const checks: PromiseWithResolvers<Caller>[] = [];
  const authenticator: Authenticator = {
    open: false,
    authenticate: () => {
      const check = Promise.withResolvers<Caller>();
      checks.push(check);
      return check.promise;
    },
    sessions: undefined,
  };
  const app = new Hono();
  app.onError(() => new Response(null, { status: 503 }));
  app.use(async (context, next) => {
    await admit(context, authenticator);
    await next();
  });
  app.get("/", () => new Response());
  const slots = new Slots(1);
  const ask = async () => {
    const slot = new RequestSlot(slots, "127.0.0.1");
    try {
      return (await app.request("/", {}, slot)).status;
    } finally {
      slot.release();
    }
  };
  const first = ask();
  assert.equal(await ask(), 503);
  for (const check of checks.toReversed()) {
    check.resolve(ann);
    await check.promise;
  }
  assert.equal(await first, 200);
});
