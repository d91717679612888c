// The leases of a stream of Redis, which are those of a consumer group. What is published is no longer
// there, nor is how often it was tried.
import { sourceScripts } from "../../../shared/outbox/stream/stream_source.ts";
import { redisCommand } from "../../../tools/servers/redis_client.ts";
import { command, type FaultPoint, running } from "./fault_point.ts";
import type { Leases } from "./leased_points.ts";

interface LeasedStream<On> {
  stream: string;
  group: string;
  urlOf(on: On): string;
}

export function streamLeases<On>({ stream, group, urlOf }: LeasedStream<On>): Leases<On> {
  const at = (name: string) => (when: FaultPoint["when"]) => {
    const script = sourceScripts.find((one) => one.name === name);
    if (!script) throw new Error(`The source has no script ${name}`);
    return command(when, running(script));
  };
  return {
    table: stream,
    states: { leased: "LEASED", failed: "DEAD" },
    keepsAttempts: false,
    at: {
      claim: at("claim"),
      done: (when) => command(when, when === "before" ? "XACK" : "EXEC"),
      commit: (when) => command(when, "EXEC"),
      retry: at("put_back"),
      failed: at("bury"),
    },
    runOut: async (on) => {
      const ask = (...args: string[]) => redisCommand(urlOf(on), ...args);
      await ask("XGROUP", "CREATE", stream, group, "0");
      const [[, entries]] = await ask(
        ...["XREADGROUP", "GROUP", group, "dead", "STREAMS", stream, ">"],
      ) as [[string, [id: string][]]];
      const ids = entries.map(([id]) => id);
      await ask("XCLAIM", stream, group, "dead", "0", ...ids, "IDLE", "2000", "JUSTID");
    },
  };
}
