// Both services of the matrix, and what happens around the process that dies: changes that other
// replicas committed, published or received before, and a client that repeats its request.
import { strict as assert } from "node:assert";
import { commitChanges } from "../../changes/change.ts";
import { readNotification } from "../../../notification/notification.ts";
import { receiveEvents } from "../../../notification/receive_events.ts";
import { type Database, openDatabase } from "../../../shared/postgres/postgres.ts";
import {
  type Answered,
  assertAllHold,
  checkInvariants,
  untilAtRest,
} from "../../../tools/chaos/invariants/invariants.ts";
import { reserveCommand } from "../../../entitlement/points/reserve.ts";
import type { Answer } from "../../../shared/commands/answer.ts";
import { commit } from "../../../shared/commands/command.ts";
import { type AnyRequest, type ReserveRequest, toHttp } from "../../../tools/load/any_request.ts";
import { attempt } from "../../../tools/load/repeating_client.ts";
import { type ChangeRequest, grant } from "../../../tools/load/change_request.ts";
import { type BothPlaces, durable, type FlowService } from "../../../tools/load/stage.ts";
import {
  type ServiceProcess,
  type Settings,
  startService,
} from "../../../tools/servers/service_process.ts";
import { runArguments } from "../../../tools/services.ts";
import { storedEvents, untilAll } from "../../support/outbox.ts";
import { freshBoth } from "../../support/places.ts";
import { startRelay } from "../../support/relays.ts";
import { sendRecordsIn } from "../../support/sends.ts";
import { countsOf } from "./flow_counts.ts";
import { observe, type Observer } from "./observer.ts";
import type { ChangeArguments, CrashPoint, Ending, Next, System } from "./point.ts";

export type FlowPoint = CrashPoint<FlowService, Stage>;

const quick: Settings = {
  NOTIFICATION_NATS_ACK_WAIT: "1s",
  NOTIFICATION_DELIVERY_POLL_INTERVAL: "50ms",
  ENTITLEMENT_OUTBOX_POLL_INTERVAL: "50ms",
  ENTITLEMENT_RESERVATIONS_POLL_INTERVAL: "50ms",
};

const reserving = reserveCommand({ idempotencyTtlMs: 3_600_000, pollIntervalMs: 1_000 });

export async function openStage(): Promise<Stage> {
  await using opened = new AsyncDisposableStack();
  const place = opened.use(await freshBoth());
  const { natsUrl, stream, entitlement, notification } = place;
  const databases = {
    entitlement: { ...entitlement, counts: countsOf.entitlement },
    notification: { ...notification, counts: countsOf.notification },
  };
  const observer = opened.use(await observe({ databases, natsUrl, stream, durable }));
  return new Stage(place, observer, opened.move());
}

export class Stage implements System<FlowService> {
  readonly place: BothPlaces;
  readonly observer: Observer;
  readonly settings: Settings;
  readonly shortLeases = {
    ENTITLEMENT_OUTBOX_LEASE: "1s",
    ENTITLEMENT_RESERVATIONS_LEASE: "1s",
    NOTIFICATION_DELIVERY_LEASE: "1s",
  };
  readonly answered: Answered[] = [];
  readonly #opened: AsyncDisposableStack;
  #unanswered: AnyRequest | undefined;

  constructor(place: BothPlaces, observer: Observer, opened: AsyncDisposableStack) {
    this.place = place;
    this.observer = observer;
    this.settings = { ...place.settings, ...quick };
    this.#opened = opened;
  }

  get owners(): BothPlaces["owners"] {
    return this.place.owners;
  }

  start(
    service: FlowService,
    settings: Settings,
    change: ChangeArguments = (args) => args,
  ): Promise<ServiceProcess> {
    return startService(service, settings, {
      arguments: (name, read) => change(runArguments(name, read)),
    });
  }

  /** If notification dies, its events are published already, so entitlement is not needed. */
  async goOn({ of, replays }: Ending<FlowService>, settings: Settings): Promise<Next> {
    await using started = new AsyncDisposableStack();
    const entitlement = of === "entitlement"
      ? started.use(await this.start(of, settings))
      : undefined;
    const { log } = started.use(await this.start("notification", settings));
    if (entitlement) assert.equal(await this.askAgain(entitlement.url), replays);
    const running = started.move();
    return { log, [Symbol.asyncDispose]: () => running.disposeAsync() };
  }

  async assertHolds(point: Ending<FlowService>, log: ServiceProcess["log"]): Promise<void> {
    await untilAtRest(this.owners);
    const sends = sendRecordsIn(log);
    assert.equal(sends.length, point.sends);
    assertAllHold(
      await checkInvariants({ owners: this.owners, answered: this.answered, sends }),
    );
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
    answers.forEach((answer, i) => this.#note(requests[i] as ChangeRequest, answer));
  }

  /** Accepts a reservation, as a replica does that carries none out. Returns its id. */
  async reserve(request: ReserveRequest): Promise<string> {
    const { result: [answer] } = await this.#with(
      "ENTITLEMENT",
      (database) => commit(database, reserving, [reserveOf(request)]),
    );
    if (answer) this.#note(request, answer);
    return JSON.parse(answer?.body ?? "{}").reservation_id;
  }

  #note(request: AnyRequest, answer: Answer): void {
    this.answered.push({
      request,
      answer: { ...answer, replayed: answer.outcome === "replayed" },
    });
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
    await this.#with(
      "NOTIFICATION",
      (database) => receiveEvents(database, received, { predecessorWaitMs: 3_600_000 }),
    );
  }

  /** Sends a request over HTTP. */
  async ask(url: string, request: AnyRequest): Promise<void> {
    const { answer } = await attempt(url, toHttp(request));
    if (!answer) throw new Error("No answer");
    this.answered.push({ request, answer });
  }

  /** The client gets no answer. */
  async askInVain(url: string, request: AnyRequest = grant()): Promise<void> {
    const { answer } = await attempt(url, toHttp(request));
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

  [Symbol.asyncDispose](): Promise<void> {
    return this.#opened.disposeAsync();
  }
}

function reserveOf({ key, user, reason, purchase, at, what }: ReserveRequest) {
  const [kind, unit, pointAmount, stockKeepingUnit] = "unit" in what
    ? ["POINTS" as const, what.unit, what.amount, null]
    : [what.change, null, null, what.sku];
  return {
    ...{ kind, userId: user, unit, pointAmount, stockKeepingUnit, source: reason },
    ...{ sourceId: purchase, executeAt: new Date(at).toISOString() },
    ...{ caller: "", idempotencyKey: key, traceId: "t", traceparent: null },
  };
}
