// Tests load this before a service. It ends the process at one point, as kill -9 would. When the point is
// reached nothing more leaves the process, and nothing comes in but the answers it still waits for: so
// everything before the point has happened, and nothing after it.
import redisCommands from "@redis/client/dist/lib/client/commands-queue.js";
import { ProtocolHandler } from "nats/lib/nats-base-client/protocol.js";
import pg from "pg";
import { type FaultPoint, variable } from "./fault_point.ts";

type Call = (this: unknown, ...args: unknown[]) => unknown;

const point: FaultPoint = JSON.parse(Deno.env.get(variable) ?? "");
const underWay = new Set<Promise<void>>(); // what was sent and is not yet answered
let seen = 0;
let counts = point.since === undefined; // commands
let dying = false;

function isReached(what: FaultPoint["what"], matches: boolean): boolean {
  return what === point.what && matches && ++seen === (point.nth ?? 1);
}

function die(): void {
  Deno.kill(Deno.pid, "SIGKILL"); // to itself, which needs no permission
}

/** Dies when everything that was sent before is answered. */
function dieInstead(): Promise<never> {
  dying = true;
  void Promise.all(underWay).then(die);
  return new Promise(() => {});
}

const client = pg.Client.prototype as unknown as { query: Call };
const sendStatement = client.query;

client.query = function (...args) {
  const [config] = args;
  const text = typeof config === "string" ? config : (config as { text: string }).text;
  if (dying || (point.withholds && text.includes(point.withholds))) return new Promise(() => {});
  const reached = isReached("statement", text.includes(point.part));
  if (reached && point.when === "before") return dieInstead();
  dying ||= reached;
  const { promise, resolve } = Promise.withResolvers<void>();
  underWay.add(promise);
  const answered = () => {
    if (reached) die();
    underWay.delete(promise);
    resolve();
  };
  const callback = args.at(-1);
  if (typeof callback === "function") {
    args[args.length - 1] = (...answer: unknown[]) => (answered(), callback(...answer));
    return sendStatement.apply(this, args);
  }
  const result = sendStatement.apply(this, args) as Promise<unknown>;
  result.then(answered, answered);
  return result;
};

const queue = redisCommands.default.prototype as unknown as { addCommand: Call };
const sendCommand = queue.addCommand;

queue.addCommand = function (...args) {
  if (dying) return new Promise(() => {});
  const text = (args[0] as string[]).join(" ");
  const { when, part, since, answered } = point;
  counts ||= since !== undefined && text.startsWith(since);
  const isMeant = counts && text.startsWith(part);
  const reached = answered === undefined && isReached("command", isMeant);
  if (reached && when === "before") return dieInstead();
  dying ||= reached;
  const result = sendCommand.apply(this, args) as Promise<unknown>;
  const over = result.then((answer) => {
    const fits = answered && new RegExp(answered).test(JSON.stringify(answer));
    if (reached || isReached("command", isMeant && Boolean(fits))) die();
  }, () => {});
  underWay.add(over);
  void over.then(() => underWay.delete(over));
  return result;
};

const protocol = ProtocolHandler.prototype as unknown as { publish: Call; processMsg: Call };
const publish = protocol.publish;
const processMessage = protocol.processMsg;

protocol.publish = function (...args) {
  if (dying) return;
  const [subject, body] = args as [string, string | Uint8Array];
  const reached = isReached("publish", subject.endsWith(point.part)) ||
    isReached("answer", typeof body === "string" && body.startsWith(point.part));
  if (reached && point.when === "before") return void dieInstead();
  publish.apply(this, args);
  if (!reached) return;
  dying = true;
  // The server answers a ping after it has read everything before it.
  void (this as ProtocolHandler).flush().then(die);
};

protocol.processMsg = function (...args) {
  if (!dying) processMessage.apply(this, args);
};
