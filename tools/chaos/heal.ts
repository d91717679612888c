// After the last fault every acknowledged change must reach its user within a bound.
import { connectTo } from "../servers/nats_client.ts";
import type { Stack } from "./stack.ts";

/** The run is given up after this; the bound that counts is far shorter (healsInTime). */
const giveUpMs = 120_000;

export interface Healing {
  ms: number;
  /** What was still wrong at the end; undefined when the system healed. */
  still: string | undefined;
  /** What took longest. */
  last: string | undefined;
}

/** Returns what is not finished yet; undefined if all is. */
export type Look = () => string | undefined | Promise<string | undefined>;

/** Waits until all replicas are ready and everything is finished. */
export async function untilHealed({ replicas }: Stack, looks: Look[]): Promise<Healing> {
  const from = performance.now();
  let last: string | undefined;
  for (;;) {
    const still = await firstOf([
      ...replicas.map((replica) => async () =>
        await replica.answers("/readyz") ? undefined : `${replica.name} is not ready`
      ),
      ...looks,
    ]);
    const ms = Math.round(performance.now() - from);
    if (!still || ms > giveUpMs) return { ms, still, last };
    last = still;
    await new Promise((again) => setTimeout(again, 250));
  }
}

async function firstOf(looks: Look[]): Promise<string | undefined> {
  try {
    for (const look of looks) {
      const problem = await look();
      if (problem !== undefined) return problem;
    }
    return undefined;
  } catch (error) {
    return String(error);
  }
}

/** Messages of which a consumer has not acknowledged all but `left`. */
export async function unread(
  { nats }: Stack,
  { stream, durable, left = 0 }: { stream: string; durable: string; left?: number },
): Promise<string | undefined> {
  const connection = await connectTo(nats.server.url, { reconnect: false, timeout: 2_000 });
  try {
    const manager = await connection.jetstreamManager();
    const { num_pending, num_ack_pending } = await manager.consumers.info(stream, durable);
    if (num_pending === 0 && num_ack_pending <= left) return undefined;
    return JSON.stringify({ num_pending, num_ack_pending, left });
  } finally {
    await connection.close();
  }
}
