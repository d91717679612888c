import { z } from "@hono/zod-openapi";
import type { HonoRequest } from "hono";
import { badRequest } from "./errors.ts";

// On behalf of whom a request is made. Only callers that may speak for users reach the routes that read
// this, so the header is believed.

const visible = /^[\x21-\x7e]{1,255}$/;

export function userOf({ raw }: HonoRequest): string {
  const userId = raw.headers.get("X-User-Id");
  if (userId === null) throw badRequest("X-User-Id is required");
  if (!visible.test(userId)) throw badRequest("X-User-Id must be visible ASCII characters");
  return userId;
}

export const actingHeader = {
  "X-User-Id": z.string().openapi({ description: "The user for whom the request is made" }),
};
