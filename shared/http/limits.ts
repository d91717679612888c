import { ApiError, unavailable } from "./errors.ts";
import { counter, countersBy } from "../telemetry/metrics.ts";

// How much anybody may ask for. docs/limits.md has all limits, also those of the runtime.

export const limits = [
  ...["url_size", "body_size", "body_time", "requests_at_once", "strangers_at_once"] as const,
  ...["per_connection", "waiting", "rate", "entitlements_per_user"] as const,
];

export type Limit = typeof limits[number];

const refusals = counter("kenri_refused_total", "requests refused because of a limit", ["limit"]);
const refusalsOf = countersBy(limits, (limit) => refusals.labels(limit));

export function countRefusal(limit: Limit): void {
  refusalsOf[limit].inc();
}

export function refusedBy(limit: Limit, error: ApiError): ApiError {
  countRefusal(limit);
  return error;
}

export const tooManyWaiting = (): ApiError =>
  refusedBy("waiting", unavailable("too many requests are waiting, try again"));

// Requests have places by what is known about them, so requests without a credential, or with one that
// is not checked yet, can't use up the places of callers.
type Standing = "stranger" | "unchecked" | "caller";

export class Places {
  readonly #atOnce: Record<Standing, number>;
  readonly #taken: Record<Standing, number> = { stranger: 0, unchecked: 0, caller: 0 };

  constructor(requestsAtOnce: number) {
    const strangers = Math.ceil(requestsAtOnce / 50);
    this.#atOnce = { stranger: strangers, unchecked: requestsAtOnce, caller: requestsAtOnce };
  }

  take(standing: Standing): void {
    if (this.#taken[standing] >= this.#atOnce[standing]) {
      throw standing === "stranger"
        ? refusedBy(
          "strangers_at_once",
          unavailable("too many come without a credential, try again"),
        )
        : refusedBy("requests_at_once", unavailable("too many requests are under way, try again"));
    }
    this.#taken[standing]++;
  }

  leave(standing: Standing): void {
    this.#taken[standing]--;
  }
}

// A request from the network, until its answer has been sent. A request for health needs no place,
// because a failed one may get a process killed that is only busy.
export class Arrival {
  readonly #places: Places;
  #standing: Standing | undefined;

  constructor(places: Places) {
    this.#places = places;
  }

  get isOfCaller(): boolean {
    return this.#standing === "caller";
  }

  enter(standing: Standing): void {
    this.#places.take(standing);
    this.leave();
    this.#standing = standing;
  }

  leave(): void {
    if (this.#standing) this.#places.leave(this.#standing);
    this.#standing = undefined;
  }
}

// As a body. The longest that is of use here names dead letters by their error: a thousand characters,
// percent-encoded.
const maxUrl = 16 * 1024;

export function refuseLongUrl(url: string): void {
  if (url.length <= maxUrl) return;
  throw refusedBy("url_size", new ApiError("URI_TOO_LONG", "the url is over 16 KiB"));
}

const hostPattern = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~-]+)(:\d{1,5})?$/;

// The runtime makes the url of Host and path, so a Host with a path of its own would choose another
// route. A prober that speaks HTTP/1.0 has no Host.
export function refuseBadHost(request: Request): void {
  const host = request.headers.get("Host");
  if (host === null ? isHealth.test(request.url) : isHostOf(host, request.url)) return;
  throw new ApiError(
    "BAD_REQUEST",
    "a request needs a Host of a name or address, as HTTP/1.1 has it, and a path that begins with /",
  );
}

function isHostOf(host: string, url: string): boolean {
  return hostPattern.test(host) && url.startsWith(`${host}/`, url.indexOf("//") + 2);
}

const isHealth = /^\w+:\/\/[^/]*\/(livez|readyz)$/;
