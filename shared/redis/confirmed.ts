import { Batch } from "../queue/batch.ts";
import { RedisUnavailable } from "./errors.ts";
import type { RedisLink, Reply } from "./redis_link.ts";
import type { Script } from "./script.ts";

// Scripts that change something. With `confirmed` an answer comes when the change is on the disk of the
// server, which is asked once for all the changes that were sent together. The link must then be used
// for nothing else, because what is sent after the question waits for its answer.

export interface Change {
  script: Script;
  keys: string[];
  args: string[];
}

export type MakeChange = (change: Change) => Promise<Reply>;

const onDiskWithinMs = 2_000;
const mostAtOnce = 500;

export function makesChanges(link: RedisLink): MakeChange {
  return ({ script, keys, args }) => link.runScript(script, keys, args);
}

export function makesConfirmedChanges(link: RedisLink): MakeChange {
  const batch = new Batch<Change, PromiseSettledResult<Reply>>({
    flush: async (changes) => {
      const sent = changes.map(({ script, keys, args }) => link.runScript(script, keys, args));
      const [made, onDisk] = await Promise.all([Promise.allSettled(sent), confirm(link)]);
      if (onDisk < 1) {
        throw new RedisUnavailable("Redis did not write its file to the disk in time");
      }
      return made;
    },
    maxItems: mostAtOnce,
    maxFlushes: 1,
    maxWaiting: 20_000,
  });
  return async (change) => {
    const made = await batch.add(change);
    if (made.status === "rejected") throw made.reason;
    return made.value;
  };
}

async function confirm(link: RedisLink): Promise<number> {
  const reply = await link.command(["WAITAOF", "1", "0", `${onDiskWithinMs}`]);
  return Number(Array.isArray(reply) ? reply[0] : 0);
}
