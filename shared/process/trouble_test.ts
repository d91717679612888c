import assert from "node:assert/strict";
import { Trouble } from "./trouble.ts";

Deno.test("a trouble is said once when it begins, and once when all that failed works again", () => {
  const said: string[] = [];
  const trouble = new Trouble((reason) => said.push(reason), () => said.push("works"));
  trouble.works("claim");
  assert.deepEqual(said, []);
  trouble.fails("claim", new Error("away"));
  trouble.fails("claim", new Error("away"));
  trouble.fails("settle", new Error("away, too"));
  assert.deepEqual(said, ["away"]);
  trouble.works("heartbeat");
  trouble.works("claim");
  assert.deepEqual(said, ["away"], "the settle still fails");
  trouble.works("settle");
  trouble.works("settle");
  trouble.fails("claim", new Error("away again"));
  assert.deepEqual(said, ["away", "works", "away again"]);
});
