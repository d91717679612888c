import assert from "node:assert/strict";
import { keptSecrets } from "./secrets.ts";

Deno.test("secrets of an earlier version are kept, and those that it lacks are added once", async () => {
  const path = await Deno.makeTempDir({ prefix: "kenri-secrets-" });
  const folder = { secrets: `${path}/secrets.json` };
  const earlier = { SENDER_TOKEN: "kept", NOTIFICATION_SENDER_TOKEN: "kept" };
  await Deno.writeTextFile(folder.secrets, JSON.stringify(earlier));
  const secrets = await keptSecrets(folder);
  const names = ["SENDER_TOKEN", "NOTIFICATION_SENDER_TOKEN", "GATEWAY_SESSION_KEYS"];
  assert.deepEqual(names.map((name) => secrets[name]?.length), [4, 4, 43]);
  assert.deepEqual(await keptSecrets(folder), secrets);
  assert.equal(((await Deno.stat(folder.secrets)).mode ?? 0) & 0o077, 0);
  await Deno.remove(path, { recursive: true });
});
