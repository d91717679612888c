import { createInbox, type Msg, type NatsConnection } from "nats";
import { inboxesOf } from "@kenri/shared/nats_connection";

// One pull at a durable consumer, which ends by the server's word. The client library's own `fetch`
// ends by a timer that is hardly longer than the server's: what is under way at that moment is
// dropped, has used up a delivery, and comes again only when the ack wait is over.

export interface Durable {
  connection: NatsConnection;
  stream: string;
  name: string;
}

export interface PullLimits {
  messages: number;
  bytes: number;
}

const expiresMs = 1_000; // which also bounds how long a stop waits for an idle pull
const answerWithinMs = 5_000; // beyond that; a server that is silent for longer is not there
const nanosecondsPerMs = 1_000_000;

// Returns when the limits or the time are reached. Rejects when the consumer can't be pulled from.
export async function pull(
  { connection, stream, name }: Durable,
  { messages, bytes }: PullLimits,
  take: (message: Pulled) => void,
): Promise<void> {
  const inbox = createInbox(inboxesOf("notification"));
  const ended = Promise.withResolvers<void>();
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
  const silence = setTimeout(
    () => ended.reject(new Error("The consumer does not answer")),
    expiresMs + answerWithinMs,
  );
  try {
    const request = { batch: messages, max_bytes: bytes, expires: expiresMs * nanosecondsPerMs };
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${name}`;
    connection.publish(subject, JSON.stringify(request), { reply: inbox });
    await ended.promise;
  } finally {
    clearTimeout(silence);
    subscription.unsubscribe();
  }
}

// What the server says to the pull itself: that it is over, as it should be, or that it is no use.
function endBy(status: Msg, ended: PromiseWithResolvers<void>): void {
  const code = status.headers?.code;
  const description = status.headers?.description ?? "";
  const regular = code === 404 || code === 408 || /MaxBytes|Batch Completed/i.test(description);
  if (regular) ended.resolve();
  else ended.reject(new Error(`The consumer can't be pulled from: ${code} ${description}`));
}

// A message of a pull, and the ways to answer it. Only the first answer counts.
export class Pulled {
  readonly data: Uint8Array;
  readonly sequence: number; // in the stream
  readonly deliveries: number; // with this one
  readonly #message: Msg;
  readonly #termReasons: boolean;
  #answered = false;

  constructor(message: Msg, termReasons: boolean) {
    this.#message = message;
    this.#termReasons = termReasons;
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

  // Never to be delivered again.
  terminate(reason: string): void {
    this.#answer(this.#termReasons ? `+TERM ${reason}` : "+TERM");
  }

  // The time in which an answer is expected begins anew.
  stillWorking(): void {
    if (!this.#answered) this.#message.respond("+WPI");
  }

  #answer(answer: string): void {
    if (this.#answered) return;
    this.#answered = true;
    this.#message.respond(answer);
  }
}

// Since 2.10.4. An older server ignores a TERM with a reason altogether.
export function readsTermReasons(version = ""): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.-]/).map(Number);
  return major > 2 || (major === 2 && (minor > 10 || (minor === 10 && patch >= 4)));
}
