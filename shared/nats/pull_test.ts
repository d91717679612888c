import assert from "node:assert/strict";
import { readsTermReasons } from "./pull.ts";

Deno.test("TERM has a reason only for servers that read it", () => {
  for (const version of ["2.10.4", "2.10.27", "2.11.0-RC.1", "2.12.1", "3.0.0"]) {
    assert.ok(readsTermReasons(version), version);
  }
  for (const version of ["2.9.10", "2.10.3", "2.10.0", "1.4.1", "", undefined, "unknown"]) {
    assert.ok(!readsTermReasons(version), `${version}`);
  }
});
