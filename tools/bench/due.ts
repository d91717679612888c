// How fast a flood of due reservations is granted.
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { withClient } from "../servers/asking.ts";
import { makeDatabase } from "../servers/databases.ts";
import { batchSize, startDueDrain } from "./due_drain.ts";
import { grantAllDue } from "./due_statement.ts";
import { assertGranted, forgetPoints, reserve } from "./reservations.ts";
import { type Bench, timed, type Work } from "./work.ts";

export async function startDue(bench: Bench): Promise<Work> {
  const due = await startDueDrain(bench, { name: "due" });
  const limitDatabase = await makeDatabase(
    bench.servers.postgres,
    "entitlement",
    "bench_due_limit",
  );
  const owner = openDatabase(limitDatabase.ownerUrl, "bench");
  return {
    unit: "reservations/s",
    atMost: {},
    measure: async () => ({ perSecond: await due.run(), figures: {} }),
    limits: [{
      name: "one statement",
      what: `all of it inside PostgreSQL, without a lease, in batches of ${batchSize}`,
      target: 0.6,
      measure: async () => {
        await withClient(limitDatabase.ownerUrl, async (client) => {
          await forgetPoints(client);
          await reserve(client, { reservations: due.items });
          await client.query("analyze point_reservations");
        });
        const perSecond = await timed(due.items, () => grantAllDue(owner, batchSize));
        await assertGranted(limitDatabase, due.items);
        return perSecond;
      },
    }],
    [Symbol.asyncDispose]: async () => {
      await owner.end();
      await due[Symbol.asyncDispose]();
    },
  };
}
