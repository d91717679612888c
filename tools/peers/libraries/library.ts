import type pg from "pg";
import type { EventRow } from "../../../shared/outbox/event_types.ts";
import type { Task } from "../contender.ts";

export type Event = EventRow & { number: number; key: string };

/** Fails unless the stream has acknowledged the event. */
export type Publish = (event: Event) => Promise<void>;

/** One way to publish the events of a table. */
export interface Library {
  tables: string; // that hold the events: emptied before they are filled, and analyzed after it
  install(task: Task): Promise<void>;
  /** In the transaction of the client, which the caller commits. */
  fill(client: pg.Client, events: Event[], task: Task): Promise<void>;
  /** Returns when it waits for events. The result stops it. */
  start(task: Task, publish: Publish): Promise<() => Promise<unknown>>;
}

/** One of a few groups, always the same one for the events of a key. */
export function groupOf({ key }: Event, groups: number): string {
  let hash = 0;
  for (const character of key) hash = (hash * 31 + character.charCodeAt(0)) >>> 0;
  return `group-${hash % groups}`;
}
