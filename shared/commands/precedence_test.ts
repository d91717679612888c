import assert from "node:assert/strict";
import type { Database } from "../postgres/postgres.ts";
import { asRequests, behindRequests, requestsCome } from "./precedence.ts";

const place = () => ({}) as Database;

Deno.test("requests come from the beginning of a commit of theirs until a moment after its end", async () => {
  const [database, other] = [place(), place()];
  assert.equal(requestsCome(database), false);
  await asRequests(database, () => Promise.resolve(assert.ok(requestsCome(database))));
  assert.ok(requestsCome(database));
  assert.equal(requestsCome(other), false);
});

Deno.test("a commit that fails is over", async () => {
  const database = place();
  await assert.rejects(asRequests(database, () => Promise.reject(new Error("no"))));
  await new Promise((over) => setTimeout(over, 250));
  assert.equal(requestsCome(database), false);
});

Deno.test("the rows of a worker rest after each commit while requests come, and not otherwise", async () => {
  const ends: string[] = [];
  const commitRows = (database: Database) =>
    behindRequests(database, async () => {
      await new Promise((over) => setTimeout(over, 20));
      ends.push("commit");
    }).then(() => ends.push("rest"));
  const calm = place();
  await Promise.all([commitRows(calm), new Promise((over) => setTimeout(over, 20))]);
  const busy = place();
  await asRequests(busy, () => Promise.resolve());
  const from = performance.now();
  await commitRows(busy);
  assert.ok(performance.now() - from >= 25, "20 ms and three tenths of them");
  assert.deepEqual(ends, ["commit", "rest", "commit", "rest"]);
});
