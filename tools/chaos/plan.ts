// The plan of a run: which fault begins when, where, and for how long. It follows from its arguments
// alone, so a run can be repeated.
import { Random } from "./random.ts";
import { receiverNames } from "./receivers.ts";
import type { ChaosService } from "./system.ts";

/** What faults can happen to. */
export interface Targets {
  replica: string[];
  database: string[];
  link: string[];
  receiver: string[];
}

type Linked = Pick<ChaosService, "name" | "servers" | "hasClients">;

/** Each replica has a link of its own to each of its servers, and clients have one to each replica. */
export function targetsOf(services: Linked[]): Targets {
  return {
    replica: services.flatMap(replicasOf),
    database: services.filter(({ servers }) => servers.includes("database")).map(databaseOf),
    link: services.flatMap((service) =>
      replicasOf(service).flatMap((replica) => [
        ...service.servers.map((server) => linkOf(replica, server)),
        ...service.hasClients ? [`clients > ${replica}`] : [],
      ])
    ),
    receiver: receiverNames,
  };
}

/** A replica uses the sender, and asks the account service, of its own number. */
export function linkOf(replica: string, server: ChaosService["servers"][0]): string {
  const isShared = ["database", "nats", "redis"].includes(server);
  return `${replica} > ${isShared ? server : replica.replace(/.*(?=-)/, server)}`;
}

export function replicasOf({ name }: Pick<ChaosService, "name">): string[] {
  return [`${name}-1`, `${name}-2`];
}

export function databaseOf({ name }: Pick<ChaosService, "name">): string {
  return `${name} database`;
}

const singles = ["nats", "redis", "stream"] as const;

interface Shape {
  /** How many times it is in each deck of faults. */
  cards: number;
  /** The part of the target that can have only one fault at a time. */
  part: "process" | "clock" | "server" | "link" | "stream";
  target: keyof Targets | typeof singles[number];
  seconds: [min: number, max: number];
  /** The number of messages, hours, or milliseconds of delay. */
  amount?: [min: number, max: number];
}

const shapes = {
  "kill": { cards: 3, part: "process", target: "replica", seconds: [0, 3] },
  "stop": { cards: 2, part: "process", target: "replica", seconds: [0, 2] },
  // Leases last 3 s in these runs, and the ack wait is 2 s.
  "freeze": { cards: 2, part: "process", target: "replica", seconds: [4, 9] },
  "clock": { cards: 1, part: "clock", target: "replica", seconds: [3, 10], amount: [-30, 30] },
  "postgres-kill": { cards: 2, part: "server", target: "database", seconds: [0, 6] },
  "postgres-full": { cards: 1, part: "server", target: "database", seconds: [3, 8] },
  "nats-kill": { cards: 2, part: "server", target: "nats", seconds: [0, 6] },
  "nats-wipe": { cards: 1, part: "server", target: "nats", seconds: [0, 3] },
  "nats-full": { cards: 1, part: "server", target: "nats", seconds: [3, 8] },
  "redis-kill": { cards: 2, part: "server", target: "redis", seconds: [0, 6] },
  "redis-stall": { cards: 2, part: "server", target: "redis", seconds: [2, 9] },
  "redis-restart": { cards: 1, part: "server", target: "redis", seconds: [0, 3] },
  "redis-wipe": { cards: 1, part: "server", target: "redis", seconds: [0, 3] },
  "cut": { cards: 3, part: "link", target: "link", seconds: [0, 4] },
  "stall": { cards: 2, part: "link", target: "link", seconds: [2, 14] },
  "mute": { cards: 3, part: "link", target: "link", seconds: [1, 6] },
  "slow": { cards: 2, part: "link", target: "link", seconds: [5, 15], amount: [10, 150] },
  "duplicates": {
    cards: 2,
    part: "stream",
    target: "stream",
    seconds: [0, 3],
    amount: [20, 300],
  },
  "poison": { cards: 2, part: "stream", target: "stream", seconds: [0, 3], amount: [1, 8] },
  // Long enough to park what waits for it, and to be probed in vain.
  "receiver-down": { cards: 2, part: "server", target: "receiver", seconds: [1, 8] },
  "receiver-hang": { cards: 1, part: "server", target: "receiver", seconds: [1, 8] },
  "receiver-refuse": { cards: 1, part: "server", target: "receiver", seconds: [1, 8] },
} satisfies Record<string, Shape>;

export type FaultKind = keyof typeof shapes;
export const faultKinds = Object.keys(shapes) as FaultKind[];

export interface Fault {
  number: number;
  kind: FaultKind;
  target: string;
  atMs: number;
  forMs: number;
  amount: number;
}

export interface PlanOptions {
  seed: number;
  minutes: number;
  kinds: readonly FaultKind[];
  targets: Targets;
}

/** So that some changes are under way before the first fault. */
const firstAtMs = 2_000;
const meanGapMs = 2_000;
/** A server that came back has this long before the next fault takes it. */
const restMs = 1_000;

export function planOf({ seed, minutes, kinds, targets }: PlanOptions): Fault[] {
  const random = new Random(seed);
  const endMs = minutes * 60_000;
  const busyUntil = new Map<string, number>();
  const faults: Fault[] = [];
  let deck: FaultKind[] = [];
  let atMs = firstAtMs;
  while (atMs < endMs) {
    if (deck.length === 0) deck = random.shuffled(deckOf(kinds));
    const fault = { ...draw(random, deck.pop() as FaultKind, targets), atMs };
    const place = placeOf(fault);
    const isFree = (busyUntil.get(place) ?? 0) <= atMs;
    if (isFree && atMs + fault.forMs <= endMs) {
      faults.push({ number: faults.length + 1, ...fault });
      busyUntil.set(place, atMs + fault.forMs + restMs);
    }
    atMs += Math.round(-Math.log(1 - random.next()) * meanGapMs);
  }
  return faults;
}

/** Only one fault at a time may affect this. */
export function placeOf({ kind, target }: Pick<Fault, "kind" | "target">): string {
  return `${shapes[kind].part} ${target}`;
}

/** Faults are dealt from a deck, so that every kind comes soon and no kind comes far too often. */
function deckOf(kinds: readonly FaultKind[]): FaultKind[] {
  return kinds.flatMap((kind) => Array.from({ length: shapes[kind].cards }, () => kind));
}

function draw(
  random: Random,
  kind: FaultKind,
  targets: Targets,
): Omit<Fault, "number" | "atMs"> {
  const { target, seconds: [min, max], amount = [0, 0] }: Shape = shapes[kind];
  return {
    kind,
    target: random.pick(isSingle(target) ? [target] : targets[target]),
    forMs: random.int(min * 1_000, max * 1_000),
    amount: random.int(amount[0], amount[1]),
  };
}

const isSingle = (target: Shape["target"]): target is typeof singles[number] =>
  singles.some((one) => one === target);

export function textOf({ number, kind, target, atMs, forMs, amount }: Fault): string {
  const from = (atMs / 1_000).toFixed(1).padStart(7);
  const size = amount === 0 ? "" : `, ${amount}`;
  return `${String(number).padStart(4)} ${from} s  ${kind.padEnd(13)} ${target}, ${
    (forMs / 1_000).toFixed(1)
  } s${size}`;
}
