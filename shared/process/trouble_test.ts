import assert from "node:assert/strict";
import { Trouble } from "./trouble.ts";

Deno.test("a problem is reported once when it begins, and once when all that failed works again", () => {
  const reported: string[] = [];
  const trouble = new Trouble((reason) => reported.push(reason), () => reported.push("works"));
  trouble.works("claim");
  assert.deepEqual(reported, []);
  trouble.fails("claim", new Error("away"));
  trouble.fails("claim", new Error("away"));
  trouble.fails("settle", new Error("away, too"));
  assert.deepEqual(reported, ["away"]);
  trouble.works("heartbeat");
  trouble.works("claim");
  assert.deepEqual(reported, ["away"], "the settle still fails");
  trouble.works("settle");
  trouble.works("settle");
  trouble.fails("claim", new Error("away again"));
  assert.deepEqual(reported, ["away", "works", "away again"]);
});
