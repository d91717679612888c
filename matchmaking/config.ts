import { type ConsoleConfig, consoles } from "@kenri/shared/console/settings.ts";
import type { WantedStream } from "@kenri/shared/nats/streams.ts";
import {
  nats,
  type NatsConfig,
  redis,
  type RedisConfig,
  service,
  type ServiceConfig,
  worker,
  type WorkerConfig,
} from "@kenri/shared/process/service_settings.ts";
import { duration, flag, maxTimerMs, number, text } from "@kenri/shared/process/setting_kinds.ts";
import { environment, parseSettings, prefixed } from "@kenri/shared/process/settings.ts";
import { z } from "zod";
import type { TicketRules } from "./join.ts";
import type { MatchingOptions } from "./match_tickets.ts";
import { program } from "./program.ts";
import { streamOfEvents, streamSettings } from "./stream_settings.ts";

export const schema = z.object({
  ...prefixed("matchmaking", {
    "modes": modes().prefault("casual,rank").describe(
      "The modes with a queue, separated by commas; requests may write them in any case",
    ),
    "ticket-ttl": duration(maxTimerMs).prefault("60s").describe("How long a ticket waits at most"),
    "result-ttl": duration(maxTimerMs).prefault("10m").describe(
      "How long a ticket can be read after its time to wait is over",
    ),
    "idempotency-ttl": duration(maxTimerMs).prefault("60s").describe(
      "How long a repeated request with the same key gets the same ticket",
    ),
    "tickets-per-user": number({ min: 1, max: 100 }).prefault("1").describe(
      "Tickets of one user that may wait in a mode at the same time",
    ),
    "bucket": text().max(64, "must have at most 64 characters").optional().describe(
      "Attribute, such as `region`, that must be the same text in both tickets of a match",
    ),
    "worker-enabled": flag().prefault("true").describe(
      "Whether this replica pairs tickets and ends those whose time is over",
    ),
    "worker-poll-interval": duration(maxTimerMs).prefault("1s").describe(
      "Time between two looks at all queues; a new ticket wakes the worker of its process at once",
    ),
    "worker-batch-size": number({ min: 2, max: 2_000 }).prefault("200").describe(
      "Tickets per call of the scripts that pair and expire",
    ),
    "durable": flag().prefault("false").describe(
      "Answers a join or a cancel, and publishes an event, only when it is on the disk of Redis 7.2",
    ),
  }),
  ...worker.settings("matchmaking.outbox"),
  ...consoles.settings("matchmaking"),
  ...streamSettings,
  ...redis.settings(),
  ...nats.settings(),
  ...service.settings("matchmaking", program.port),
}).check(
  ...redis.checks(),
  ...nats.checks(),
  ...worker.checks("matchmaking.outbox"),
  ...service.checks("matchmaking"),
);

const modePattern = /^[a-z0-9][a-z0-9_-]{0,31}$/;

function modes() {
  return text().transform((written, context) => {
    const modes = written.split(",").map((mode) => mode.trim().toLowerCase());
    const isGood = modes.every((mode) => modePattern.test(mode));
    if (isGood && new Set(modes).size === modes.length) return modes;
    context.addIssue(
      "must be different names of up to 32 letters, digits, - and _, separated by commas",
    );
    return z.NEVER;
  });
}

export interface Config extends ServiceConfig, NatsConfig, RedisConfig, ConsoleConfig {
  modes: string[];
  rules: TicketRules;
  matching: MatchingOptions & { enabled: boolean };
  durable: boolean;
  outbox: WorkerConfig;
  stream: WantedStream;
}

export function readConfig(read: (name: string) => string | undefined = environment): Config {
  const settings = parseSettings(schema, read);
  const rules = {
    ticketTtlMs: settings["matchmaking.ticket-ttl"],
    resultTtlMs: settings["matchmaking.result-ttl"],
    idempotencyTtlMs: settings["matchmaking.idempotency-ttl"],
    perUser: settings["matchmaking.tickets-per-user"],
    bucket: settings["matchmaking.bucket"],
  };
  return {
    ...service.config("matchmaking", settings),
    ...consoles.config(settings["matchmaking.console.peer-url"]),
    ...redis.config(settings),
    ...nats.config(settings),
    modes: settings["matchmaking.modes"],
    rules,
    matching: {
      enabled: settings["matchmaking.worker-enabled"],
      pollIntervalMs: settings["matchmaking.worker-poll-interval"],
      // A batch with tickets of only one user would find no match.
      batchSize: Math.max(settings["matchmaking.worker-batch-size"], rules.perUser + 1),
      hasBuckets: rules.bucket !== undefined,
    },
    durable: settings["matchmaking.durable"],
    outbox: worker.config("matchmaking.outbox", settings),
    stream: streamOfEvents(settings),
  };
}
