// What happens around the process that dies: changes that other replicas committed, published or
// received before, and a client that repeats its request.
import { strict as assert } from "node:assert";
import { commitChanges } from "../../changes/change.ts";
import { readNotification } from "../../../notification/notification.ts";
import { receiveEvents } from "../../../notification/receive_events.ts";
import { type Database, openDatabase } from "../../../shared/postgres/postgres.ts";
import type { BothPlaces } from "../../../tools/load/stage.ts";
import { type ChangeRequest, grant } from "../../../tools/load/change_request.ts";
import { sendChange } from "../../support/changes.ts";
import type { Answered } from "../../../tools/chaos/invariants/invariants.ts";
import { storedEvents, untilAll } from "../../support/outbox.ts";
import { startRelay } from "../../support/relays.ts";

export class Stage {
  readonly place: BothPlaces;
  readonly answered: Answered[] = [];
  #unanswered: ChangeRequest | undefined;

  constructor(place: BothPlaces) {
    this.place = place;
  }

  /** Commits changes, as a replica without a relay does. */
  async commit(...requests: ChangeRequest[]): Promise<void> {
    const changes = requests.map(({ key, action, user, sku, reason, purchase }) => ({
      ...{ action, userId: user, stockKeepingUnit: sku, reason, purchaseId: purchase },
      ...{ caller: "", idempotencyKey: key, traceId: "t", traceparent: null },
    }));
    const { result: answers } = await this.#with(
      "ENTITLEMENT",
      (database) => commitChanges(database, changes, { idempotencyTtlMs: 3_600_000 }),
    );
    answers.forEach((answer, i) =>
      this.answered.push({
        request: requests[i] as ChangeRequest,
        answer: { ...answer, replayed: answer.outcome === "replayed" },
      })
    );
  }

  /** Publishes all events, as a relay does. */
  async publish(): Promise<void> {
    const { entitlement: { serviceUrl }, owners } = this.place;
    await using _relay = startRelay({ ...this.place, serviceUrl });
    await untilAll(owners.entitlement, "PUBLISHED");
  }

  /** Receives messages, as a replica does that dies before it acknowledges anything. */
  async receive(isReceived: (sequence: number) => boolean = () => true): Promise<void> {
    const events = await storedEvents(this.place.natsUrl, this.place.stream);
    const received = events.filter(({ seq }) => isReceived(seq))
      .map(({ body }) => readNotification(body));
    await this.#with("NOTIFICATION", (database) => receiveEvents(database, received, 3_600_000));
  }

  /** Sends a request over HTTP. */
  async ask(url: string, request: ChangeRequest): Promise<void> {
    const { answer } = await sendChange(url, request);
    if (!answer) throw new Error("No answer");
    this.answered.push({ request, answer });
  }

  /** The client gets no answer. */
  async askInVain(url: string, request: ChangeRequest = grant()): Promise<void> {
    const { answer } = await sendChange(url, request);
    assert.equal(answer, undefined);
    this.#unanswered = request;
  }

  /** Repeats the unanswered request. Returns whether its answer was stored; undefined if none exists. */
  async askAgain(url: string): Promise<boolean | undefined> {
    const request = this.#unanswered;
    if (!request) return undefined;
    await this.ask(url, request);
    return this.answered.at(-1)?.answer.replayed;
  }

  async #with<Result>(service: string, work: (database: Database) => Promise<Result>) {
    const database = openDatabase(this.place.settings[`${service}_DATABASE_URL`] ?? "", "replica");
    try {
      return await work(database);
    } finally {
      await database.end();
    }
  }
}
