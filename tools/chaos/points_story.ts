// What one client does with points and reservations: reserves them for the next seconds, cancels some
// while they come due, grants and spends, and schedules changes of a right.
import type {
  AnyRequest,
  CancelRequest,
  PointsRequest,
  ReserveRequest,
} from "../load/any_request.ts";
import type { Random } from "./random.ts";

/** The parts of a request that name its sender. */
export type NewRequest = (user: string) => Pick<
  PointsRequest,
  "key" | "user" | "reason" | "purchase"
>;

/** Times that are over, as well as some within which much can fail. */
const dueInMs = [-500, 3_000] as const;
const units = ["points", "gems"];

export class PointsStory {
  readonly #random: Random;
  readonly #newRequest: NewRequest;
  readonly #user: () => string;
  #reserved: CancelRequest[] = []; // not cancelled yet, by this client
  #soon: CancelRequest | undefined; // before anything else

  constructor(random: Random, newRequest: NewRequest, user: () => string) {
    this.#random = random;
    this.#newRequest = newRequest;
    this.#user = user;
  }

  /** `isSole`: it can't be refused. */
  next(): { request: AnyRequest; isSole: boolean } {
    const chance = this.#random.next();
    const earlier = chance < 0.15 ? this.#cancel() : undefined;
    if (earlier) return { request: earlier, isSole: false };
    if (chance < 0.65) return { request: this.#reserve(), isSole: true };
    const action = chance < 0.8 ? "POINTS_ADD" : "POINTS_TAKE";
    return { request: this.#change(action), isSole: action === "POINTS_ADD" };
  }

  /** Often a reservation is cancelled right after it was accepted, before it is due. */
  cancelSoon(): CancelRequest | undefined {
    const soon = this.#soon;
    this.#soon = undefined;
    return soon;
  }

  note(request: AnyRequest, answer: string | undefined): void {
    if (request.action !== "RESERVE" || answer === undefined) return;
    const { reservation_id: reservation } = JSON.parse(answer);
    const isOfRight = "sku" in request.what;
    const { user } = request;
    const cancel: CancelRequest = {
      ...{ action: "CANCEL", key: `cancel-${reservation}`, user, reservation, isOfRight },
    };
    if (this.#random.next() < 0.3) this.#soon = cancel;
    else this.#reserved = [...this.#reserved.slice(-4), cancel];
  }

  #cancel(): CancelRequest | undefined {
    if (this.#reserved.length === 0) return undefined;
    const [request] = this.#reserved.splice(this.#random.int(0, this.#reserved.length - 1), 1);
    return request;
  }

  #reserve(): ReserveRequest {
    const what = this.#random.next() < 0.3
      ? { change: this.#random.pick(["GRANT", "REVOKE"] as const), sku: "pass" }
      : { unit: this.#random.pick(units), amount: this.#random.int(1, 9) };
    const at = Date.now() + this.#random.int(...dueInMs);
    return { action: "RESERVE", ...this.#newRequest(this.#user()), at, what };
  }

  #change(action: PointsRequest["action"]): PointsRequest {
    const amount = this.#random.int(1, 9);
    const unit = this.#random.pick(units);
    return { action, ...this.#newRequest(this.#user()), unit, amount };
  }
}
