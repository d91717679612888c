// The load: clients that behave as real ones do. Whatever goes wrong, they repeat a request under its
// key until it is answered.
import { setTimeout as pause } from "node:timers/promises";
import { type AnyRequest, type OrderRequest, toHttp } from "../load/any_request.ts";
import type { ChangeRequest } from "../load/change_request.ts";
import { type Answer, type Outcome, RepeatingClient } from "../load/repeating_client.ts";
import { plantedKey } from "../planted.ts";
import { PointsStory } from "./points_story.ts";
import { Random } from "./random.ts";

/** One request, from its first attempt to its answer. */
export interface SentRequest {
  request: AnyRequest;
  /** Why it was sent; only a change is a new request. */
  kind: "change" | "repeat" | "double tap" | "key conflict";
  /** The client knows that it can't be refused: no other changes the entitlement, or it adds points. */
  isSole: boolean;
  /** In milliseconds since 1970, by the clock of the clients' process. */
  sentAt: number;
  answeredAt: number;
  attempts: Partial<Record<Outcome, number>>;
  answer: Answer | undefined;
}

export interface LoadOptions {
  /** Each leads to a replica of the entitlement service. */
  urls: string[];
  /** The same for the notification service, and where its plain orders are sent. */
  orders: { urls: string[]; to: string };
  changesPerSecond: number;
  /** All clients change entitlements of only these users. Absent: each client has its own users. */
  users?: number | undefined;
  seed: number;
}

export interface Load {
  requests: SentRequest[];
  /** Sends no new requests, and resolves when all are answered. */
  finish(): Promise<void>;
  /** Gives up the requests that are still unanswered. */
  abandon(): void;
}

export const failingUser = "fails-";
const clients = 32;
const patience = { attemptTimeoutMs: 3_000, pauseMs: 200 };
const skus = ["book", "film", "song"];

export function startLoad({ urls, orders, changesPerSecond, users, seed }: LoadOptions): Load {
  const requests: SentRequest[] = [];
  const stopping = new AbortController();
  const abandoned = new AbortController();
  const options = { ...patience, abandoned: abandoned.signal };
  const repeating = new RepeatingClient(urls, options);
  const ordering = new RepeatingClient(orders.urls, options);
  const random = new Random(seed);
  const everyMs = clients / changesPerSecond * 1_000;
  const running = Array.from({ length: clients }, async (_, client) => {
    const story = new Story(
      { client, users, ordersTo: orders.to },
      new Random(random.int(0, 2 ** 32)),
      requests,
    );
    await pause(story.random.next() * everyMs);
    while (!stopping.signal.aborted) {
      const until = Date.now() + everyMs * (0.5 + story.random.next());
      const steps = story.next();
      const sent = steps.map((step): SentRequest => ({
        ...{ ...step, sentAt: Date.now(), answeredAt: 0, attempts: {}, answer: undefined },
      }));
      requests.push(...sent);
      await Promise.all(
        sent.map((one) =>
          askUntilAnswered(one, one.request.action === "ORDER" ? ordering : repeating)
        ),
      );
      story.note(sent);
      await pause(Math.max(0, until - Date.now()));
    }
  });
  return {
    requests,
    finish: async () => {
      stopping.abort();
      await Promise.all(running);
    },
    abandon: () => abandoned.abort(),
  };
}

type Step = Pick<SentRequest, "request" | "kind" | "isSole">;

/** Decides what one client does next. */
class Story {
  readonly random: Random;
  readonly #client: number;
  readonly #users: number | undefined;
  readonly #ordersTo: string;
  readonly #requests: SentRequest[];
  readonly #isActive = new Map<string, boolean>(); // its own entitlements
  readonly #points: PointsStory;
  #count = 0;

  constructor(
    { client, users, ordersTo }: { client: number; users: number | undefined; ordersTo: string },
    random: Random,
    requests: SentRequest[],
  ) {
    this.#client = client;
    this.#users = users;
    this.#ordersTo = ordersTo;
    this.random = random;
    this.#requests = requests;
    const ownOrHot = () => random.next() < 0.7 ? this.#ownUser() : this.#hotUser();
    this.#points = new PointsStory(random, (user) => ({ user, ...this.#named() }), ownOrHot);
  }

  next(): Step[] {
    const cancel = this.#points.cancelSoon();
    if (cancel) return [{ kind: "change", isSole: false, request: cancel }];
    const chance = this.random.next();
    if (chance < 0.12) return this.#repeat();
    if (chance < 0.17) return this.#keyConflict();
    if (chance < 0.22) return this.#doubleTap();
    if (chance < 0.24) return [this.#failing()];
    if (chance < 0.36) return [this.#hot()];
    if (chance > 0.95) return [this.#order()];
    return [chance < 0.65 ? { kind: "change", ...this.#points.next() } : this.#own()];
  }

  /** Remembers the state of the client's own entitlements, and what it has reserved. */
  note(sent: SentRequest[]): void {
    for (const { request, kind, isSole, answer } of sent) {
      if (kind === "change") this.#points.note(request, answer?.body);
      if (!isSole || kind === "key conflict" || kind === "repeat") continue;
      if (!isOfEntitlement(request)) continue;
      this.#isActive.set(`${request.user} ${request.sku}`, request.action === "GRANT");
    }
  }

  #ownUser(): string {
    return this.#users === undefined
      ? `user-${this.#client}-${this.random.int(1, 12)}`
      : `user-${this.#client % this.#users + 1}`;
  }

  #hotUser(): string {
    return this.#users === undefined
      ? `hot-${this.random.int(1, 3)}`
      : `user-${this.random.int(1, this.#users)}`;
  }

  #own(): Step & { request: ChangeRequest } {
    const user = this.#ownUser();
    const sku = this.#users === undefined ? this.random.pick(skus) : `book-${this.#client}`;
    const action = this.#isActive.get(`${user} ${sku}`) ? "REVOKE" : "GRANT";
    return { kind: "change", isSole: true, request: this.#request({ user, sku, action }) };
  }

  #order(): Step {
    const { key, reason } = this.#named();
    const request = { action: "ORDER", key, reason, user: this.#ownUser(), url: this.#ordersTo };
    return { kind: "change", isSole: true, request: request as OrderRequest };
  }

  /** All clients change these at once. */
  #hot(): Step {
    const user = this.#hotUser();
    const action = this.random.pick(["GRANT", "REVOKE"] as const);
    const request = this.#request({ user, sku: "ticket", action });
    return { kind: "change", isSole: false, request };
  }

  /** Every send of its notification fails, so it ends as a dead letter. */
  #failing(): Step {
    const user = `${failingUser}${this.#client}-${this.#count}`;
    const request = this.#request({ user, sku: "book", action: "GRANT" });
    return { kind: "change", isSole: true, request };
  }

  #doubleTap(): Step[] {
    const { request } = this.#own();
    return ["change", "double tap"].map((kind) => ({ kind, isSole: true, request } as Step));
  }

  #repeat(): Step[] {
    const earlier = this.#earlier();
    return earlier ? [{ ...earlier, kind: "repeat" }] : [this.#own()];
  }

  #keyConflict(): Step[] {
    const earlier = this.#earlier();
    if (!earlier) return [this.#own()];
    const { request } = earlier;
    if (request.action === "CANCEL") return [this.#own()]; // has no key
    const other = isOfEntitlement(request) && this.random.next() < 0.5
      ? { ...request, action: request.action === "GRANT" ? "REVOKE" as const : "GRANT" as const }
      : { ...request, reason: "another" };
    return [{ isSole: false, kind: "key conflict", request: other }];
  }

  #earlier(): SentRequest | undefined {
    const { length } = this.#requests;
    if (length === 0) return undefined;
    const earlier = this.#requests[this.random.int(Math.max(0, length - 2_000), length - 1)];
    // A refused cancel is not stored: it is decided by the state of its reservation.
    const isRepeatable = earlier?.request.action !== "CANCEL" || earlier.answer?.status === 200;
    return earlier?.answer && earlier.kind === "change" && isRepeatable ? earlier : undefined;
  }

  #request(parts: Pick<ChangeRequest, "user" | "sku" | "action">): ChangeRequest {
    return { ...this.#named(), ...parts };
  }

  #named(): Pick<ChangeRequest, "key" | "reason" | "purchase"> {
    const purchase = `${this.#client}-${++this.#count}`;
    return { key: `${plantedKey}-${purchase}`, reason: "purchase", purchase };
  }
}

function isOfEntitlement(request: AnyRequest): request is ChangeRequest {
  return request.action === "GRANT" || request.action === "REVOKE";
}

async function askUntilAnswered(sent: SentRequest, client: RepeatingClient): Promise<void> {
  const attempts = await client.ask(toHttp(sent.request));
  for (const { outcome } of attempts) {
    sent.attempts[outcome] = (sent.attempts[outcome] ?? 0) + 1;
  }
  const last = attempts.at(-1);
  if (last?.outcome !== "answered") return;
  sent.answer = last.answer;
  sent.answeredAt = last.answeredAt;
}
