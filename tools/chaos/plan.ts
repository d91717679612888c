// The plan of a run: which fault begins when, where, and for how long. It follows from its arguments
// alone, so a run can be repeated.
import { Random } from "./random.ts";

export const replicas = [
  "entitlement-1",
  "entitlement-2",
  "notification-1",
  "notification-2",
] as const;
export type ReplicaName = typeof replicas[number];

export const databases = ["entitlement database", "notification database"] as const;
export type DatabaseName = typeof databases[number];

/** Each replica has a link of its own to each of its servers, and clients have one to each replica. */
export const links = replicas.flatMap((replica) => [
  `${replica} > database`,
  `${replica} > nats`,
  ...replica.startsWith("entitlement") ? [`clients > ${replica}`] : [],
]);

interface Shape {
  /** How many times it is in each deck of faults. */
  cards: number;
  /** The part of the target that can have only one fault at a time. */
  part: "process" | "clock" | "server" | "link" | "stream";
  targets: readonly string[];
  seconds: [min: number, max: number];
  /** The number of messages, hours, or milliseconds of delay. */
  amount?: [min: number, max: number];
}

const shapes = {
  "kill": { cards: 3, part: "process", targets: replicas, seconds: [0, 3] },
  "stop": { cards: 2, part: "process", targets: replicas, seconds: [0, 2] },
  // Leases last 3 s in these runs, and the ack wait is 2 s.
  "freeze": { cards: 2, part: "process", targets: replicas, seconds: [4, 9] },
  "clock": { cards: 1, part: "clock", targets: replicas, seconds: [3, 10], amount: [-30, 30] },
  "postgres-kill": { cards: 2, part: "server", targets: databases, seconds: [0, 6] },
  "postgres-full": { cards: 1, part: "server", targets: databases, seconds: [3, 8] },
  "nats-kill": { cards: 2, part: "server", targets: ["nats"], seconds: [0, 6] },
  "nats-wipe": { cards: 1, part: "server", targets: ["nats"], seconds: [0, 3] },
  "nats-full": { cards: 1, part: "server", targets: ["nats"], seconds: [3, 8] },
  "cut": { cards: 3, part: "link", targets: links, seconds: [0, 4] },
  "stall": { cards: 2, part: "link", targets: links, seconds: [2, 14] },
  "mute": { cards: 3, part: "link", targets: links, seconds: [1, 6] },
  "slow": { cards: 2, part: "link", targets: links, seconds: [5, 15], amount: [10, 150] },
  "duplicates": {
    cards: 2,
    part: "stream",
    targets: ["stream"],
    seconds: [0, 3],
    amount: [20, 300],
  },
  "poison": { cards: 2, part: "stream", targets: ["stream"], seconds: [0, 3], amount: [1, 8] },
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
}

/** So that some changes are under way before the first fault. */
const firstAtMs = 2_000;
const meanGapMs = 2_000;
/** A server that came back has this long before the next fault takes it. */
const restMs = 1_000;

export function planOf({ seed, minutes, kinds }: PlanOptions): Fault[] {
  const random = new Random(seed);
  const endMs = minutes * 60_000;
  const busyUntil = new Map<string, number>();
  const faults: Fault[] = [];
  let deck: FaultKind[] = [];
  let atMs = firstAtMs;
  while (atMs < endMs) {
    if (deck.length === 0) deck = random.shuffled(deckOf(kinds));
    const fault = { ...draw(random, deck.pop() as FaultKind), atMs };
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

function draw(random: Random, kind: FaultKind): Omit<Fault, "number" | "atMs"> {
  const { targets, seconds: [min, max], amount = [0, 0] }: Shape = shapes[kind];
  return {
    kind,
    target: random.pick(targets),
    forMs: random.int(min * 1_000, max * 1_000),
    amount: random.int(amount[0], amount[1]),
  };
}

export function textOf({ number, kind, target, atMs, forMs, amount }: Fault): string {
  const from = (atMs / 1_000).toFixed(1).padStart(7);
  const size = amount === 0 ? "" : `, ${amount}`;
  return `${String(number).padStart(4)} ${from} s  ${kind.padEnd(13)} ${target}, ${
    (forMs / 1_000).toFixed(1)
  } s${size}`;
}
