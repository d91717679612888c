import { ApiError } from "@kenri/shared/http/errors.ts";
import { instantSchema } from "@kenri/shared/http/instant.ts";

// The time at which a reservation is carried out.

export function executeAtSchema(): ReturnType<typeof instantSchema> {
  return instantSchema(
    "When to carry it out: RFC 3339 with an offset, to the microsecond. A time in the past means now; how far ahead it may be is a setting",
  );
}

// An instant is compared with the clock of this service, because nothing depends on its precision.
export function notTooFarAhead(instant: string, maxAheadMs: number): string {
  const latest = Date.now() + maxAheadMs;
  if (Date.parse(instant) > latest) {
    const written = new Date(latest).toISOString();
    throw new ApiError("BAD_REQUEST", `execute_at must not be later than ${written}`);
  }
  return instant;
}
