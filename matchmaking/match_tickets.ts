import type { Log } from "@kenri/shared/process/log.ts";
import { pause, Wakeup } from "@kenri/shared/process/signals.ts";
import { Trouble } from "@kenri/shared/process/trouble.ts";
import type { MakeChange } from "@kenri/shared/redis/confirmed.ts";
import { RedisUnavailable } from "@kenri/shared/redis/errors.ts";
import type { RedisLink } from "@kenri/shared/redis/redis_link.ts";
import { commonKeys, keysOf, queueOf } from "./keys.ts";
import { countDependencyError, countEnded, observeMatched } from "./metrics.ts";
import { scripts } from "./scripts/scripts.ts";

// Pairs tickets and ends those whose time is over. Any number of replicas may do so at the same time,
// because each call of a script is one atomic step.

export interface MatchingParts {
  redis: RedisLink;
  change: MakeChange;
  rings: Rings;
  log: Log;
}

export interface MatchingOptions {
  pollIntervalMs: number;
  batchSize: number;
  hasBuckets: boolean;
}

// The way from a request that has made a ticket to the loop of its mode in the same process.
export class Rings {
  readonly #relayWake: Wakeup;
  readonly #modes = new Map<string, { wake: Wakeup; buckets: Set<string> }>();

  constructor(modes: readonly string[], relayWake: Wakeup) {
    this.#relayWake = relayWake;
    for (const mode of modes) this.#modes.set(mode, { wake: new Wakeup(), buckets: new Set() });
  }

  // A ticket waits.
  ring(mode: string, bucket: string): void {
    const rung = this.#modes.get(mode);
    rung?.buckets.add(bucket);
    rung?.wake.trigger();
  }

  // Events wait to be published.
  announced(): void {
    this.#relayWake.trigger();
  }

  // The buckets with new tickets since the last call.
  take(mode: string): string[] {
    const rung = this.#modes.get(mode);
    const buckets = [...rung?.buckets ?? []];
    rung?.buckets.clear();
    return buckets;
  }

  async wait(mode: string, ms: number, stop: AbortSignal): Promise<void> {
    await this.#modes.get(mode)?.wake.wait(ms, stop);
  }
}

const retryMs = 200;

// One loop for each mode, so that a flood in one mode does not hold up the others.
export async function matchTickets(
  parts: MatchingParts,
  mode: string,
  options: MatchingOptions,
  stop: AbortSignal,
): Promise<void> {
  const round: Round = { mode, pollsAt: -Infinity, expiresAt: -Infinity };
  const trouble = new Trouble(
    (reason) => parts.log.error("Tickets in {mode} can't be matched: {reason}", { mode, reason }),
    () => parts.log.info("Tickets in {mode} can be matched again", { mode }),
  );
  while (!stop.aborted) {
    await parts.redis.connects(stop);
    try {
      const idleMs = await runOnce(parts, options, round);
      trouble.works("matching");
      if (idleMs > 0) await parts.rings.wait(mode, idleMs, stop);
    } catch (error) {
      // The link reports that Redis is unavailable.
      if (error instanceof RedisUnavailable) countDependencyError("redis");
      else trouble.fails("matching", error);
      await pause(retryMs, stop);
    }
  }
}

interface Round {
  mode: string;
  pollsAt: number; // when all queues are looked at again, by performance.now()
  expiresAt: number; // when the next ticket may be due
}

// Returns how long to wait.
async function runOnce(
  parts: MatchingParts,
  options: MatchingOptions,
  round: Round,
): Promise<number> {
  const rung = parts.rings.take(round.mode);
  const polls = performance.now() >= round.pollsAt;
  const buckets = polls ? await allBuckets(parts, options, round.mode) : rung;
  if (polls) round.pollsAt = performance.now() + options.pollIntervalMs;
  for (const bucket of buckets) await pairAll(parts, options, round.mode, bucket);
  if (polls || performance.now() >= round.expiresAt) {
    round.expiresAt = performance.now() + await expireAll(parts, options, round.mode);
  }
  return Math.min(round.pollsAt, round.expiresAt) - performance.now();
}

// Tickets without the attribute of the buckets have a queue as well.
async function allBuckets(
  { redis }: MatchingParts,
  { hasBuckets }: MatchingOptions,
  mode: string,
): Promise<string[]> {
  if (!hasBuckets) return [""];
  return ["", ...await redis.command(["SMEMBERS", keysOf(mode).buckets]) as string[]];
}

async function pairAll(
  { change, rings }: MatchingParts,
  { batchSize }: MatchingOptions,
  mode: string,
  bucket: string,
): Promise<void> {
  for (;;) {
    const { popped, changed } = await pairOnce(change, mode, bucket, batchSize);
    if (changed > 0) rings.announced();
    // A full batch that changed nothing would be the same again.
    if (popped < batchSize || changed === 0) return;
  }
}

export async function pairOnce(
  change: MakeChange,
  mode: string,
  bucket: string,
  batchSize: number,
): Promise<{ popped: number; changed: number }> {
  const keys = [...commonKeys(mode), queueOf(mode, bucket), keysOf(mode).buckets];
  const reply = await change({ script: scripts.pair, keys, args: [`${batchSize}`, bucket] });
  const [popped, waitsMs, expired, invalid] = reply as [number, number[], number, number];
  observeMatched(waitsMs);
  countEnded("expired", expired);
  countEnded("invalid", invalid);
  return { popped, changed: waitsMs.length + expired + invalid };
}

// Returns in how many ms the next ticket is due.
async function expireAll(
  { change, rings }: MatchingParts,
  { batchSize }: MatchingOptions,
  mode: string,
): Promise<number> {
  for (;;) {
    const reply = await change({
      script: scripts.expire,
      keys: [...commonKeys(mode), queueOf(mode)],
      args: [`${batchSize}`],
    });
    const [expired, invalid, nextMs] = reply as [number, number, number];
    countEnded("expired", expired);
    countEnded("invalid", invalid);
    if (expired + invalid > 0) rings.announced();
    if (nextMs !== 0) return nextMs < 0 ? Infinity : nextMs;
  }
}
