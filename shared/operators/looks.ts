import type { OwnCommand } from "../ops/command.ts";
import type { DeadLetterCounts } from "./dead_letters.ts";
import type { Waiting } from "./status.ts";
import type { TimelineBy } from "./timeline.ts";

// What operators see of a service and can do with it: which of the routes for operators it has, and
// the words for what they show. `ops` and the console follow from it. Nothing that a service
// declares here may import a package, because the launcher loads it before any sandbox exists.

export interface Looks<Status extends ServiceStatus = ServiceStatus> {
  status?: StatusLooks<Status>; // it has /debug/NAME/status
  timeline?: TimelineLooks; // it has /debug/NAME/timeline
  deadLetters?: Layers; // it has /debug/NAME/dead-letters and what sends them back
  // It has /operations/NAME/erase-user. The ones that let users in, or make events of what users do,
  // are the first to erase them, so that users get nothing new while the others do.
  erasesUsers?: boolean | "first";
  logsOperations?: boolean; // it has /debug/NAME/operations
  commands?: Readonly<Record<string, OwnCommand>>; // of ops, besides those of its queues
}

/** Where there are events, there is a console. */
export function hasConsole(looks: Looks | undefined): boolean {
  return looks?.timeline !== undefined;
}

/** Each layer and what its dead letters are, in a sentence. No two services have the same layer. */
export type Layers = Readonly<Record<string, string>>;

export interface ServiceStatus {
  nats?: boolean; // absent if the service does not use NATS
  errors?: DeadLetterCounts["errors"]; // absent if it has no dead letters
}

export interface StatusLooks<Status> {
  queues: readonly QueueLooks<Status>[];
  figures?(status: Status): Figures;
  problems?(status: Status): string[]; // besides those of its queues and dead letters
}

export type Figures = Record<string, string | number>;

/** A table whose rows wait for work. */
export interface QueueLooks<Status> {
  title: string;
  noun: string; // of a row, such as "event"
  until: string; // what a row waits for, such as "to be published"
  where?: string; // such as "in the outbox"
  command: string; // of ops, which lists the rows
  layers: readonly string[]; // of its dead letters
  lateSeconds: number; // after which a waiting row is late
  waitsForNats: boolean; // then a late row is no further problem while NATS is down
  of(status: Status): Waiting;
}

export interface TimelineLooks {
  title: string; // of the status that an event has here
  // The status of an event that is not known here. Without it, the service knows only events of its
  // own, which no other service receives into a table.
  absent?: string;
  by: readonly TimelineBy[];
}
