import { callerOf } from "@kenri/shared/access/caller.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { uuidPattern } from "@kenri/shared/process/uuid.ts";
import { z } from "@hono/zod-openapi";
import type { Context } from "hono";

// On behalf of whom a request is made. The header X-User-Id names a user, and is believed only from a
// caller with the scope accounts:act-as. It only ever takes rights away: what the caller may do, such a
// request may do for the user's own account, or if the user is an ADMIN. Without it a caller acts in its
// own name.

export interface Actor {
  name: string; // the user_id, or the name of the caller
  isUser: boolean;
}

export function actorOf(context: Context): Actor {
  const { name, scopes } = callerOf(context);
  const userId = context.req.raw.headers.get("X-User-Id");
  if (userId === null || !scopes.has("accounts:act-as")) return { name, isUser: false };
  if (!uuidPattern.test(userId)) throw new ApiError("BAD_REQUEST", "X-User-Id must be a UUID");
  return { name: userId.toLowerCase(), isUser: true };
}

export const actingHeader = {
  "X-User-Id": z.uuid().optional().openapi({
    description:
      "The user for whom the request is made; ignored without the scope `accounts:act-as`",
  }),
};

export const notOwner = "only the owner of the account or an ADMIN may do this";
export const notAdmin = "only an ADMIN may do this";
