import { slotOf } from "@kenri/shared/access/admit.ts";
import { ApiError, unavailable } from "@kenri/shared/http/errors.ts";
import { refusedBy } from "@kenri/shared/http/limits.ts";
import type { Context } from "hono";
import { requireStanding, visitorOf } from "./session/admit.ts";
import type { CheckSession } from "./session/check.ts";

// Requests that wait, for up to a minute, until something changes. They have slots of their own, so
// that other requests always find one, and each user has only a few of them. A wait ends when the
// browser has gone, and when the gateway stops.

const maxWaits = 8; // of one user: a few tabs and devices

export type Wait = <Result>(
  context: Context,
  ask: (left: AbortSignal) => Promise<Result>,
) => Promise<Result>;

export function waitsOf({ check, stop }: { check: CheckSession; stop: AbortSignal }): Wait {
  const waits = new Map<string, number>(); // by user
  return async (context, ask) => {
    const { session } = visitorOf(context);
    const { userId } = session;
    const others = waits.get(userId) ?? 0;
    if (others >= maxWaits) throw tooManyWaits();
    slotOf(context)?.take("waiting");
    waits.set(userId, others + 1);
    const left = AbortSignal.any([context.req.raw.signal, stop]);
    try {
      const result = await ask(left);
      await requireStanding(check, session); // which may have ended meanwhile
      return result;
    } catch (error) {
      throw left.aborted ? ended(stop) : error;
    } finally {
      const rest = (waits.get(userId) ?? 1) - 1;
      if (rest > 0) waits.set(userId, rest);
      else waits.delete(userId);
    }
  };
}

function tooManyWaits(): Error {
  const message = `at most ${maxWaits} requests of a user wait at the same time`;
  return refusedBy("waiting", new ApiError("TOO_MANY_REQUESTS", message, { "Retry-After": "1" }));
}

// If the browser has gone, this is seen in the metrics only, and there it must not count as a failure.
function ended(stop: AbortSignal): Error {
  return stop.aborted
    ? unavailable("the gateway is stopping, try again")
    : new ApiError("REQUEST_TIMEOUT", "the caller has gone");
}
