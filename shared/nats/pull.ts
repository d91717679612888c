import { createInbox, type Msg, type NatsConnection } from "nats";
import { inboxesOf } from "./connection.ts";
import { pause } from "../process/signals.ts";

// One pull from a durable consumer. The server decides when it ends, not a timer here: a message
// that arrived after such a timer would be dropped, would have used up a delivery, and would be
// redelivered only after the ack wait. The server sends a status at the end of a pull. nats-server
// 2.9 sometimes omits it; then its answer to a request for the state of the consumer marks the end.

export interface Durable {
  connection: NatsConnection;
  service: string; // whose NATS user pulls, and may subscribe only to inboxes of its own
  stream: string;
  name: string;
  refused?: ReadonlySet<string>; // subjects that NATS does not permit
}

export interface PullLimits {
  messages: number;
  bytes: number;
}

export const expiresMs = 1_000; // also the longest time that a stop waits for an idle pull
const statusWithinMs = 250; // after the pull has expired
const answerWithinMs = 5_000; // a server that is silent for longer is unavailable
const nanosecondsPerMs = 1_000_000;

// Returns when a limit or the time is reached. Rejects if the consumer can't be pulled from.
export async function pull(
  durable: Durable,
  { messages, bytes }: PullLimits,
  take: (message: Pulled) => void,
): Promise<void> {
  const { connection, service, stream, name } = durable;
  const inbox = createInbox(inboxesOf(service));
  const ended = Promise.withResolvers<void>();
  const over = new AbortController();
  const termReasons = readsTermReasons(connection.info?.version);
  let left = messages;
  const subscription = connection.subscribe(inbox, {
    callback: (error, message) => {
      if (error) return ended.reject(error);
      if (message.subject === inbox) return endBy(message, ended);
      take(new Pulled(message, termReasons));
      if (--left === 0) ended.resolve();
    },
  });
  void subscription.closed.then(() => ended.resolve()); // with its connection
  try {
    const request = { batch: messages, max_bytes: bytes, expires: expiresMs * nanosecondsPerMs };
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${name}`;
    connection.publish(subject, JSON.stringify(request), { reply: inbox });
    askWhenSilent(durable, subject, over.signal).then(ended.resolve, (error) => {
      if (!connection.isClosed()) ended.reject(error);
    });
    await ended.promise;
  } finally {
    over.abort();
    subscription.unsubscribe();
  }
}

// Returns when the pull is over. After the server has answered the flush it knows the pull. The
// request for the state is sent after the pull has expired, so its answer arrives after all of its
// messages.
async function askWhenSilent(
  { connection, stream, name, refused }: Durable,
  pulling: string,
  over: AbortSignal,
): Promise<void> {
  const flushed = connection.flush().then(() => true);
  const hasPull = await Promise.race([flushed, pause(answerWithinMs, over)]);
  if (!hasPull && !over.aborted) throw new Error("NATS does not answer");
  await pause(expiresMs + statusWithinMs, over);
  if (over.aborted) return;
  const subject = `$JS.API.CONSUMER.INFO.${stream}.${name}`;
  const answer = await connection.request(subject, "", { timeout: answerWithinMs });
  const { error } = answer.json<{ error?: { code: number; description: string } }>();
  if (error) throw cannotPull(error.code, error.description);
  // NATS does not answer a pull that it does not permit.
  if (refused?.has(pulling)) throw new Error("NATS does not permit pulling from the consumer");
}

function cannotPull(code: number | undefined, description: string): Error {
  return new Error(`The consumer can't be pulled from: ${code} ${description}`);
}

// A status of the pull itself: its regular end, or an error.
function endBy(status: Msg, ended: PromiseWithResolvers<void>): void {
  const code = status.headers?.code;
  const description = status.headers?.description ?? "";
  const regular = code === 404 || code === 408 || /MaxBytes|Batch Completed/i.test(description);
  if (regular) ended.resolve();
  else ended.reject(cannotPull(code, description));
}

export interface Message {
  readonly subject: string;
  readonly data: Uint8Array;
  header(name: string): string | undefined;
}

// A message of a pull. Only the first answer to it counts.
export class Pulled implements Message {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly sequence: number; // in the stream
  readonly deliveries: number; // including this one
  readonly #message: Msg;
  readonly #termReasons: boolean;
  #answered = false;

  constructor(message: Msg, termReasons: boolean) {
    this.#message = message;
    this.#termReasons = termReasons;
    this.subject = message.subject;
    this.data = message.data;
    const tokens = message.reply?.split(".") ?? [];
    const deliveries = tokens.length < 11 ? 4 : 6; // the longer form names domain and account
    this.deliveries = Number(tokens[deliveries]);
    this.sequence = Number(tokens[deliveries + 1]);
  }

  header(name: string): string | undefined {
    return this.#message.headers?.get(name).slice(0, 255) || undefined;
  }

  ack(): void {
    this.#answer("+ACK");
  }

  retryIn(ms: number): void {
    this.#answer(`-NAK ${JSON.stringify({ delay: Math.round(ms) * nanosecondsPerMs })}`);
  }

  // The message will not be redelivered.
  terminate(reason: string): void {
    this.#answer(this.#termReasons ? `+TERM ${reason}` : "+TERM");
  }

  // Restarts the time within which an answer is expected.
  stillWorking(): void {
    if (!this.#answered) this.#message.respond("+WPI");
  }

  #answer(answer: string): void {
    if (this.#answered) return;
    this.#answered = true;
    this.#message.respond(answer);
  }
}

// True since 2.10.4. An older server ignores a TERM that has a reason.
export function readsTermReasons(version = ""): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.-]/).map(Number);
  return major > 2 || (major === 2 && (minor > 10 || (minor === 10 && patch >= 4)));
}
