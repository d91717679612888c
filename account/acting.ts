import { z } from "@hono/zod-openapi";
import { callerOf } from "@kenri/shared/access/caller.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { uuidPattern } from "@kenri/shared/process/uuid.ts";
import type { Context } from "hono";

// On behalf of whom a request is made. The header X-User-Id names a user, and is believed only from a
// caller with the scope accounts:act-as. Without it a caller acts in its own name.

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

export const actingHeaders = {
  "X-User-Id": z.uuid().optional().openapi({
    description: "The user on whose behalf the caller acts; needs the scope `accounts:act-as`",
  }),
};

export const notOwner = "only the owner of the account or an ADMIN may do this";
