// Marks what is due as PROCESSING and publishes it. The lease is what finds rows that were marked and not
// published, or published and lost. Argument: the options as JSON.
import { openPublisher } from "../../../shared/outbox/publisher.ts";
import { openDatabase } from "../../../shared/postgres/postgres.ts";
import { reservations } from "../../../entitlement/points/reservations.ts";
import { connectTo } from "../../servers/nats_client.ts";
import { type BrokerOptions, subjectOf } from "./queue.ts";

const { databaseUrl, natsUrl, name, batchSize, leaseMs }: BrokerOptions = JSON.parse(
  Deno.args[0] ?? "",
);
const pollIntervalMs = 1_000;
const database = openDatabase(databaseUrl, "scanner");
const publisher = openPublisher(await connectTo(natsUrl), "entitlement");
const claim = reservations.claimRepeatedly(database, {
  worker: "scanner",
  leaseMs,
  batchSize,
  pollIntervalMs,
});
for (;;) {
  const { rows, more, nextDueMs } = await claim(batchSize);
  const results = await Promise.all(rows.map((row) =>
    publisher.publish({
      id: row.token + row.id, // a row that is published again is another message
      subject: subjectOf(name),
      body: new TextEncoder().encode(JSON.stringify(row)),
    })
  ));
  // Rows that were not acknowledged wait for the end of their lease.
  const lost = results.filter(({ kind }) => kind !== "acked").length;
  if (lost > 0) console.error(`${lost} of ${rows.length} messages were not acknowledged`);
  if (more) continue;
  await new Promise((due) =>
    setTimeout(due, Math.min(Math.ceil(nextDueMs ?? Infinity), pollIntervalMs))
  );
}
