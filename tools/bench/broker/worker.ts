// Grants what the scanner has published, by the same commands as the service's own worker, and
// acknowledges after the commit. Argument: the options as JSON.
import { carryingOut } from "../../../entitlement/points/carry_out.ts";
import { mostPoints } from "../../../entitlement/points/points.ts";
import type { ReservationRow } from "../../../entitlement/points/reservations.ts";
import { pull, type Pulled } from "../../../shared/nats/pull.ts";
import { openDatabase } from "../../../shared/postgres/postgres.ts";
import { Handover } from "../../../shared/queue/handover.ts";
import { connectTo } from "../../servers/nats_client.ts";
import { type BrokerOptions, durable, streamOf } from "./queue.ts";

const { databaseUrl, natsUrl, name, batchSize, leaseMs }: BrokerOptions = JSON.parse(
  Deno.args[0] ?? "",
);
const backoff = { baseMs: 1_000, maxMs: 60_000, minMs: 1_000, jitterMin: 0.5, jitterMax: 1.5 };
const job = carryingOut(
  { database: openDatabase(databaseUrl, "worker"), toRelay: new Handover() },
  {
    commit: { idempotencyTtlMs: 24 * 3_600_000 },
    points: { unit: "points", maxBalance: mostPoints },
    reservations: {
      ...{ worker: "worker", batchSize, leaseMs, backoff },
      ...{ pollIntervalMs: 1_000, maxAttempts: 10 },
    },
  },
);
const stream = { connection: await connectTo(natsUrl), stream: streamOf(name), name: durable };
const limits = { messages: batchSize, bytes: 16 << 20 };

async function grant(message: Pulled): Promise<void> {
  const row: ReservationRow = JSON.parse(new TextDecoder().decode(message.data));
  const outcome = await job.work(row);
  // A row that was published again is granted by its other message.
  const isOver = outcome.kind === "done" || outcome.kind === "later";
  if (isOver) message.ack();
  else message.retryIn(1_000);
}

// One pull begins while the messages of the other are granted.
async function pullRepeatedly(): Promise<never> {
  for (;;) await pull({ ...stream, service: "entitlement" }, limits, (one) => void grant(one));
}
await Promise.all([pullRepeatedly(), pullRepeatedly()]);
