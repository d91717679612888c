// The names in Redis. All names of a mode have the same hash tag, so in a cluster they are on one node.

export interface ModeKeys {
  tickets: string; // the keys of tickets begin with it
  expiring: string;
  events: string;
  dead: string; // events that could not be published
  operations: string; // what operators have changed
  changes: string; // a channel
  buckets: string;
}

const inMode = (mode: string, name: string) => `mm:{${mode}}:${name}`;

export function keysOf(mode: string): ModeKeys {
  return {
    tickets: inMode(mode, "ticket:"),
    expiring: inMode(mode, "expiring"),
    events: inMode(mode, "events"),
    dead: inMode(mode, "dead"),
    operations: inMode(mode, "operations"),
    changes: inMode(mode, "changes"),
    buckets: inMode(mode, "buckets"),
  };
}

// What every script gets first (scripts/ticket.lua).
export function commonKeys(mode: string): string[] {
  const { tickets, expiring, events, changes } = keysOf(mode);
  return [tickets, expiring, events, changes];
}

export function modeOfKey(key: string): string {
  return /^mm:\{(.+?)\}:/.exec(key)?.[1] ?? "";
}

// Without buckets a mode has a single queue.
export function queueOf(mode: string, bucket = ""): string {
  return bucket === "" ? inMode(mode, "queue") : inMode(mode, `queue:${escaped(bucket)}`);
}

export const idempotencyKeyOf = (mode: string, userId: string, key: string): string =>
  inMode(mode, `idemp:${escaped(userId)}:${escaped(key)}`);
export const waitingOf = (mode: string, userId: string): string =>
  inMode(mode, `of:${escaped(userId)}`);
export const joinsOf = (mode: string, userId: string): string =>
  inMode(mode, `joins:${escaped(userId)}`);

// Two parts that are joined by a colon can't be confused with two others.
function escaped(part: string): string {
  return encodeURIComponent(part);
}
