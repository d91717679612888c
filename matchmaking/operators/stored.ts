import type { NamedStream, StoredEvents } from "@kenri/shared/outbox/stream/stored_events.ts";
import type { MakeChange } from "@kenri/shared/redis/confirmed.ts";
import type { RedisLink } from "@kenri/shared/redis/redis_link.ts";
import { keysOf } from "../keys.ts";
import { eventOf, group } from "../publish_events.ts";

// What operators look at: everything of this service is in Redis.

export interface Stored extends StoredEvents {
  change: MakeChange;
  modes: readonly string[];
  perUser: number;
}

interface StoredParts {
  redis: RedisLink;
  change: MakeChange;
  modes: readonly string[];
  perUser: number;
  leaseMs: number; // of the relay
}

export function storedIn(parts: StoredParts): Stored {
  const streams = parts.modes.map((mode): NamedStream => ({ name: mode, ...keysOf(mode) }));
  return { ...parts, streams, group, eventOf };
}
