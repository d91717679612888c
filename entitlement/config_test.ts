import assert from "node:assert/strict";
import { readConfig } from "./config.ts";

Deno.test("what the duplicate window may still swallow is taken for being on its way", () => {
  const settings: Record<string, string> = {
    ENTITLEMENT_DATABASE_URL: "postgres://kenri@127.0.0.1/entitlement",
    ENTITLEMENT_NATS_STREAM: "events",
    ENTITLEMENT_NATS_SUBJECT: "entitlement.events",
    NATS_URL: "nats://127.0.0.1:4222",
    HOSTNAME: "one",
  };
  for (const [window, graceSeconds] of [["2m", 180], ["1500ms", 62], ["1h", 3_660]] as const) {
    const given = { ...settings, ENTITLEMENT_NATS_DUPLICATE_WINDOW: window };
    const { reconcile } = readConfig((name) => given[name as keyof typeof given]);
    assert.equal(reconcile.graceSeconds, graceSeconds, window);
  }
});
