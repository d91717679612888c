import { ApiError } from "@kenri/shared/http/errors.ts";
import type { Handler } from "hono";
import { type LoginResult, loginsBy } from "../metrics.ts";

// Counts the logins that fail with an error. A 400, a 401 or a 429 is not counted: either no login has
// begun, or it has been counted already.
export function counted(handler: Handler): Handler {
  return async (context, next) => {
    try {
      return await handler(context, next);
    } catch (error) {
      const result = resultOf(error);
      if (result) loginsBy[result].inc();
      throw error;
    }
  };
}

function resultOf(error: unknown): LoginResult | undefined {
  if (!(error instanceof ApiError)) return "error";
  if (error.code === "ACCOUNT_INACTIVE") return "refused";
  return error.status >= 500 ? "unavailable" : undefined;
}
