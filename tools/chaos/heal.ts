// After the last fault every acknowledged change must reach its user within a bound.
import { unrest } from "./invariants/tables.ts";
import { connectTo } from "../servers/nats_client.ts";
import type { Poison } from "./messages.ts";
import { durable } from "../load/stage.ts";
import { stream } from "./replica_settings.ts";
import type { Stack } from "./stack.ts";

/**
 * A frozen transaction keeps its locks for 10 s, a statement may take 12 s, and then what waited has
 * to be worked off.
 */
const healWithinMs = 120_000;

export interface Healing {
  ms: number;
  /** What was still wrong at the end; undefined when the system healed. */
  still: string | undefined;
  /** What took longest. */
  last: string | undefined;
}

export async function untilHealed(
  stack: Stack,
  poison: Poison[],
  clientsDone: () => boolean,
): Promise<Healing> {
  const from = performance.now();
  let last: string | undefined;
  for (;;) {
    const still = await remainingProblem(stack, poison, clientsDone).catch((error) =>
      String(error)
    );
    const ms = Math.round(performance.now() - from);
    if (!still || ms > healWithinMs) return { ms, still, last };
    last = still;
    await new Promise((again) => setTimeout(again, 250));
  }
}

async function remainingProblem(
  stack: Stack,
  poison: Poison[],
  clientsDone: () => boolean,
): Promise<string | undefined> {
  for (const replica of Object.values(stack.replicas)) {
    if (!await replica.answers("/readyz")) return `${replica.name} is not ready`;
  }
  if (!clientsDone()) return "clients have requests without an answer";
  const restless = await unrest(stack.owners.entitlement, stack.owners.notification);
  if (restless) return JSON.stringify(restless);
  return await unread(stack, poison);
}

/** Messages that the database refuses are redelivered for minutes before they become dead letters. */
async function unread({ nats }: Stack, poison: Poison[]): Promise<string | undefined> {
  const connection = await connectTo(nats.server.url, { reconnect: false, timeout: 2_000 });
  try {
    const manager = await connection.jetstreamManager();
    const { num_pending, num_ack_pending } = await manager.consumers.info(stream, durable);
    const refused = poison.filter(({ kind }) => kind === "refused").length;
    if (num_pending === 0 && num_ack_pending <= refused) return undefined;
    return JSON.stringify({ num_pending, num_ack_pending, refused });
  } finally {
    await connection.close();
  }
}
