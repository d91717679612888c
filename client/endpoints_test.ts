import assert from "node:assert/strict";
import { notificationClient } from "./client.ts";

Deno.test("a replay takes as many calls as it has batches, each with a key of its own", async () => {
  const asked: { key: string | null; cursor: string | undefined }[] = [];
  const batches = [
    { operation_id: "o-1", found: 500, replayed: 500, complete: false, next_cursor: "c-1" },
    { operation_id: "o-2", found: 500, replayed: 499, complete: false, next_cursor: "c-2" },
    { operation_id: "o-3", found: 7, replayed: 7, complete: true },
  ];
  const kenri = notificationClient("http://kenri.example", {
    fetch: (_, init) => {
      const { cursor } = JSON.parse(String(init.body));
      asked.push({ key: new Headers(init.headers).get("Idempotency-Key"), cursor });
      return Promise.resolve(Response.json(batches[asked.length - 1]));
    },
  });
  const replay = { from: "2026-01-01T00:00:00Z", to: "2026-01-02T00:00:00Z", only: "ALL" as const };
  assert.deepEqual(await kenri.replayEndpoint("key", "e-1", replay), {
    found: 1_007,
    replayed: 1_006,
  });
  assert.deepEqual(asked, [
    { key: "key", cursor: undefined },
    { key: "key-2", cursor: "c-1" },
    { key: "key-3", cursor: "c-2" },
  ]);
});
