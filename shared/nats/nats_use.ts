import type { InboxStreams } from "../inbox/durables.ts";
import type { WantedStream } from "./streams.ts";

/**
 * What a service does on NATS. `deno task provision` makes its streams and consumers, and prints
 * its permissions.
 */
export interface NatsUse {
  /** The streams to which it publishes. */
  streams?: WantedStream[];
  /** From which it consumes. */
  inboxes?: InboxStreams[];
  /** That it only reads, with a read-only inbox. */
  reads?: Pick<WantedStream, "name" | "subjects">[];
  /** The subjects to which it publishes messages that no stream keeps. */
  signals?: string[];
  /** The subjects of such messages that it receives. */
  hears?: string[];
  /** The subjects to which it sends requests. The answers arrive in an inbox of their own. */
  asks?: string[];
  /** The subjects whose requests it answers. */
  answers?: string[];
}
