// A request that was refused a place must not take one later, when its credential turns out to be good.
import assert from "node:assert/strict";
import { Hono } from "hono";
import { Arrival, Places } from "../http/limits.ts";
import { admit } from "./admit.ts";
import type { Caller } from "./caller.ts";
import type { Authenticator } from "./authenticator.ts";

const ann: Caller = { name: "ann", scopes: new Set() };

Deno.test("who was refused while the credential was being checked takes no place afterwards", async () => {
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
  const places = new Places(1);
  const ask = async () => {
    const arrival = new Arrival(places);
    try {
      return (await app.request("/", {}, arrival)).status;
    } finally {
      arrival.leave();
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
