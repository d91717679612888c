// Carries out the plan: starts each fault at its time and ends it again.
import { pause } from "../../shared/process/signals.ts";
import type { Server } from "../servers/server.ts";
import { type Fault, placeOf, textOf } from "./plan.ts";
import type { Condition } from "./proxy.ts";
import type { Replica } from "./replica.ts";
import { freeze } from "./freeze.ts";
import type { OnDisk, Stack } from "./stack.ts";
import type { Wipes } from "./wipes.ts";

/** A fault as it was carried out. */
export interface Injected {
  fault: Fault;
  from: number;
  until: number;
  /** Why it was not injected, or what was special about it. */
  note: string;
}

export function wasDone({ note }: Injected): boolean {
  return !note.startsWith("left out");
}

/** What faults need besides the stack. */
export interface FaultParts {
  stack: Stack;
  messages: StreamFaults;
  wipes: Wipes;
}

/** Faults of the messages in the stream. */
export interface StreamFaults {
  sendAgain(count: number, forMs: number): Promise<string | void>;
  sendPoison(count: number, forMs: number): Promise<string | void>;
}

export interface Injection {
  injected: Injected[];
  /** All faults are over. */
  done: Promise<void>;
}

export function injectFaults(
  plan: Fault[],
  parts: FaultParts,
  stop: AbortSignal,
  say: (line: string) => void,
): Injection {
  const injected: Injected[] = [];
  const busy = new Set<string>();
  const startedAt = performance.now();
  const running = plan.map(async (fault) => {
    await pause(startedAt + fault.atMs - performance.now(), stop);
    if (stop.aborted) return;
    const one: Injected = { fault, from: Date.now(), until: Infinity, note: "" };
    injected.push(one);
    say(textOf(fault));
    one.note = await unlessBusy(busy, placeOf(fault), async () => {
      return await injectOne(fault, parts, stop) ?? "";
    });
    one.until = Date.now();
    if (one.note) say(`     fault ${fault.number}: ${one.note}`);
  });
  return { injected, done: Promise.all(running).then(() => {}) };
}

/** A fault may end later than planned, for example because a service takes long to stop. */
async function unlessBusy(
  busy: Set<string>,
  place: string,
  work: () => Promise<string>,
): Promise<string> {
  if (busy.has(place)) return "left out: the fault before it has not ended yet";
  busy.add(place);
  try {
    return await work();
  } catch (error) {
    return `failed: ${(error as Error).message}`;
  } finally {
    busy.delete(place);
  }
}

/** Returns a note if the fault was left out or something was special about it. */
function injectOne(
  fault: Fault,
  { stack, messages, wipes }: FaultParts,
  stop: AbortSignal,
): Promise<string | void> {
  const { kind, target, forMs, amount } = fault;
  const lasting = () => pause(forMs, stop);
  switch (kind) {
    case "kill":
    case "stop":
      return restart(stack.replica(target), kind === "kill" ? "SIGKILL" : "SIGTERM", lasting);
    case "freeze":
      return stack.replica(target).freeze(forMs);
    case "clock":
      return jumpClock(stack.replica(target), fault, stop);
    case "postgres-kill":
      return killServer(stack.database(target), lasting);
    case "postgres-full":
      return fillDisk(stack.database(target), lasting);
    case "nats-kill":
      return killServer(stack.nats, lasting);
    case "nats-wipe":
      return killServer(stack.nats, lasting, () => wipes.wipeNats(stack.nats.server));
    case "nats-full":
      return fillDisk(stack.nats, lasting);
    case "redis-kill":
      return killServer(stack.redis, lasting);
    case "redis-stall":
      return freeze(stack.redis.server.pid, forMs);
    case "redis-restart":
      return restartServer(stack.redis, lasting);
    case "redis-wipe":
      return killServer(stack.redis, lasting, () => wipes.wipeRedis(stack.redis.server));
    case "cut":
      return disturb(stack, target, { kind: "cut" }, lasting);
    case "stall":
      return disturb(stack, target, { kind: "stalled" }, lasting);
    case "mute":
      return disturb(stack, target, { kind: "muted" }, lasting);
    case "slow":
      return disturb(stack, target, { kind: "slow", delayMs: amount }, lasting);
    case "duplicates":
      return messages.sendAgain(amount, forMs);
    case "poison":
      return messages.sendPoison(amount, forMs);
    case "receiver-down":
    case "receiver-hang":
    case "receiver-refuse":
      return stack.receivers.disturb(target, kind, lasting);
  }
}

async function restart(
  replica: Replica,
  how: "SIGTERM" | "SIGKILL",
  lasting: () => Promise<void>,
): Promise<void> {
  await replica.end(how);
  await lasting();
  replica.start();
}

/** Moves the clock by this many hours, ahead or back, and returns it to the true time afterwards. */
async function jumpClock(
  replica: Replica,
  { forMs, amount }: Fault,
  stop: AbortSignal,
): Promise<string | void> {
  const run = replica.runs.at(-1);
  // The signal would end a process that has no listener for it yet.
  if (!await replica.answers("/livez")) return "left out: the replica is not running";
  const [there, back] = amount > 0
    ? ["SIGUSR2", "SIGWINCH"] as const
    : ["SIGWINCH", "SIGUSR2"] as const;
  const signal = async (which: Deno.Signal) => {
    // Signals that come together are one, so each hour is a signal with time to arrive.
    for (let hour = 0; hour < Math.abs(amount); hour++) {
      // Only this process has the wrong time; the next one of the replica has the true one.
      if (replica.runs.at(-1) === run) replica.signal(which);
      await pause(20, stop);
    }
  };
  await signal(there);
  await pause(forMs, stop);
  await signal(back);
}

async function killServer(
  { server }: OnDisk<Server>,
  lasting: () => Promise<void>,
  meanwhile: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  await server.kill();
  await meanwhile();
  await lasting();
  await server.start();
}

async function restartServer(
  { server }: OnDisk<Server>,
  lasting: () => Promise<void>,
): Promise<void> {
  await server.stop();
  await lasting();
  await server.start();
}

/**
 * PostgreSQL ends when it can't write its log, and nats-server switches JetStream off when it can't
 * store, until it is restarted. So both are restarted, as an operator would do.
 */
async function fillDisk(
  { server, disk }: OnDisk<Server>,
  lasting: () => Promise<void>,
): Promise<string | void> {
  if (!disk.canBeFull) return "left out: mounting is not allowed here";
  await disk.fill();
  await lasting();
  await disk.empty();
  const ended = !server.isRunning;
  if (!ended) await server.kill();
  await server.start();
  return ended ? "the server had ended by itself" : undefined;
}

async function disturb(
  stack: Stack,
  link: string,
  condition: Condition,
  lasting: () => Promise<void>,
): Promise<void> {
  const proxy = stack.links.get(link);
  proxy?.set(condition);
  await lasting();
  proxy?.set({ kind: "open" });
}

/** Ends all faults that are still active. */
export async function endAllFaults(stack: Stack): Promise<void> {
  for (const proxy of stack.links.values()) proxy.set({ kind: "open" });
  for (const { server, disk } of stack.servers) {
    await disk.empty();
    if (!server.isRunning) await server.start();
  }
}
