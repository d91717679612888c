import { ApiError, unavailable } from "./errors.ts";
import { counter, countersBy } from "./metrics.ts";
import type { App } from "./serve.ts";

// How much anybody may ask for. docs/limits.md has all limits, also those of the runtime.

export const limits = [
  ...["url_size", "body_size", "body_time", "requests_at_once", "waiting", "rate"] as const,
  "entitlements_per_user" as const,
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

// As a body. The longest that is of use here names dead letters by their error: a thousand characters,
// percent-encoded.
const maxUrl = 16 * 1024;

// The application behind the limits that need nothing but the request's first line.
export function limited(
  app: App,
  requestsAtOnce: number,
  refuse: (error: ApiError) => Response,
): App {
  let underWay = 0;
  return {
    fetch: async (request) => {
      if (request.url.length > maxUrl) {
        return refuse(
          refusedBy("url_size", new ApiError("URI_TOO_LONG", "the url is over 16 KiB")),
        );
      }
      if (underWay >= requestsAtOnce && !isHealth(request)) {
        const error = unavailable("too many requests are under way, try again");
        return refuse(refusedBy("requests_at_once", error));
      }
      underWay++;
      try {
        return await app.fetch(request);
      } finally {
        underWay--;
      }
    },
  };
}

// Whoever asks for it would else end a process that only has much to do.
function isHealth({ url }: Request): boolean {
  return /^\w+:\/\/[^/]*\/(livez|readyz)$/.test(url);
}
