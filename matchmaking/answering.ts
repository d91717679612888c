import { ApiError } from "@kenri/shared/http/errors.ts";
import { errorAnswer } from "@kenri/shared/http/fields.ts";
import { RedisUnavailable } from "@kenri/shared/redis/errors.ts";
import type { Context, Handler } from "hono";
import { apiError, badRequest, type ErrorCode } from "./errors.ts";
import { countDependencyError } from "./metrics.ts";

// How the routes of tickets answer what can go wrong in all of them.

const tryAgain = "matchmaking is unavailable, try again";

export const unavailableAnswer = errorAnswer<ErrorCode>(
  "Redis is unavailable, too many requests are waiting, or the service is stopping",
  { MATCHMAKING_UNAVAILABLE: tryAgain },
);

export function answering(handle: (context: Context) => Promise<Response>): Handler {
  return async (context) => {
    try {
      return await handle(context);
    } catch (error) {
      if (error instanceof RedisUnavailable) {
        countDependencyError("redis");
        throw apiError("MATCHMAKING_UNAVAILABLE", tryAgain, { "Retry-After": "1" });
      }
      if (error instanceof ApiError && error.code === "BAD_REQUEST") {
        throw badRequest(error.message);
      }
      throw error;
    }
  };
}
