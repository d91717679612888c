import { addConsole } from "@kenri/shared/console/console.tsx";
import { deadScripts } from "@kenri/shared/outbox/stream/dead_entries.ts";
import { sourceScripts, type StreamRow } from "@kenri/shared/outbox/stream/stream_source.ts";
import { runService } from "@kenri/shared/process/service.ts";
import { closeAll, openAccess, openNats } from "@kenri/shared/process/service_parts.ts";
import { aborted } from "@kenri/shared/process/signals.ts";
import { Handover } from "@kenri/shared/queue/handover.ts";
import { openRedis } from "@kenri/shared/redis/open_redis.ts";
import { collectFromRedis } from "@kenri/shared/telemetry/redis_figures.ts";
import { matchmakingApp } from "./app.ts";
import { Changes } from "./changes.ts";
import { readConfig } from "./config.ts";
import { readFigures, toFigures } from "./figures.ts";
import { keysOf } from "./keys.ts";
import { matchTickets, Rings } from "./match_tickets.ts";
import { matchmakingConsole } from "./operators/console.tsx";
import { storedIn } from "./operators/stored.ts";
import { program } from "./program.ts";
import { publishEvents } from "./publish_events.ts";
import { scripts } from "./scripts/scripts.ts";

await runService(program, readConfig, (config, { log, abandon }) => {
  const { modes, matching, outbox, stream } = config;
  const store = openRedis(program, config, log, {
    scripts: [...Object.values(scripts), ...sourceScripts, ...deadScripts],
    confirmedBy: config.durable ? "MATCHMAKING_DURABLE" : undefined,
  });
  const nats = openNats(program, config, log, { needsNats: true });
  const authenticator = openAccess(program, config, log);
  const { redis, change } = store;
  const toRelay = new Handover<StreamRow>();
  const rings = new Rings(matching.enabled ? modes : [], toRelay.wake);
  const changes = new Changes();
  for (const mode of modes) {
    redis.subscribe(keysOf(mode).changes, (message) => changes.announced(message));
  }
  const { perUser } = config.rules;
  collectFromRedis(redis, async () => toFigures(await readFigures({ redis, modes, perUser })));
  const stored = storedIn({ redis, change, modes, perUser, leaseMs: outbox.leaseMs });
  const { natsIsAvailable } = nats;
  const app = matchmakingApp({
    ...config,
    ...{ redis, change, changes, rings, authenticator, log },
    operators: config.debug ? { stored, wakeRelay: toRelay.wake, natsIsAvailable } : undefined,
    checks: { ...store.checks, ...nats.checks },
  });
  const console = config.debug
    ? [addConsole(app, authenticator, matchmakingConsole, config.consolePeers)]
    : [];
  const relay = {
    name: "relay",
    run: (signal: AbortSignal) =>
      publishEvents(
        { redis, change, link: nats.link, toRelay, log, abandon },
        modes,
        { ...outbox, stream },
        signal,
      ),
  };
  const matchingOf = (mode: string) => ({
    name: `matching in ${mode}`,
    run: (signal: AbortSignal) =>
      matchTickets({ redis, change, rings, log }, mode, matching, signal),
  });
  return {
    app,
    loops: [
      ...store.loops,
      ...(matching.enabled ? modes.map(matchingOf) : []),
      relay,
      ...console,
      { name: "waits", run: (signal) => aborted(signal).then(() => changes.close()) },
    ],
    close: () => closeAll(nats, store),
  };
});
