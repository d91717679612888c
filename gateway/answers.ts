import { z } from "@hono/zod-openapi";
import { errorAnswer } from "@kenri/shared/http/fields.ts";
import {
  type Dependency,
  type DependencyCode,
  type ErrorCode,
  type Failure,
  statusOfCode,
} from "./errors.ts";

// What the services behind answer, as far as the gateway reads or describes it. They may answer more,
// which passes unchanged.

export const accountSchema = z.looseObject({
  user_id: z.uuid(),
  display_name: z.string().nullable(),
  locale: z.string().nullable(),
  status: z.string(),
  roles: z.array(z.string()),
  version: z.int(),
}).openapi("Account");

export const accountFieldsSchema = z.object({
  display_name: z.string().nullable().optional(),
  locale: z.string().nullable().optional(),
}).openapi("AccountFields");

export const entitlementsSchema = z.looseObject({
  user_id: z.string(),
  entitlements: z.array(z.looseObject({
    stock_keeping_unit: z.string(),
    status: z.string(),
    version: z.int(),
    updated_at: z.string(),
  })),
}).openapi("Entitlements");

export const pointsSchema = z.looseObject({
  user_id: z.string(),
  balances: z.array(z.looseObject({ unit: z.string(), balance: z.int() })),
}).openapi("Points");

export const notificationsSchema = z.looseObject({
  user_id: z.string(),
  notifications: z.array(z.looseObject({
    notification_id: z.uuid(),
    type: z.string(),
    status: z.string(),
    created_at: z.string(),
    payload: z.record(z.string(), z.unknown()),
  })),
  next_cursor: z.string().optional(),
}).openapi("Notifications");

export const joinSchema = z.object({
  party_size: z.literal(1),
  attributes: z.record(z.string(), z.unknown()).optional(),
  idempotency_key: z.string(),
}).openapi("Join");

export const ticketSchema = z.looseObject({
  ticket_id: z.string(),
  status: z.string(),
  expires_at: z.string(),
  matched: z.looseObject({
    match_id: z.string(),
    peer_user_ids: z.array(z.string()),
    session: z.record(z.string(), z.unknown()),
    matched_at: z.string(),
  }).nullable().optional(),
}).openapi("Ticket");

type Answers = Record<number, ReturnType<typeof errorAnswer>>;

// How a route answers when a service behind it fails, for the API description.
export function failuresOf(...dependencies: Dependency[]): Answers {
  return {
    502: answerOf("A service behind gave no answer of use", dependencies, [
      ...["UNAUTHORIZED", "INVALID_RESPONSE", "BAD_GATEWAY"] as const,
    ]),
    503: answerOf("A service behind can't be reached, or failed too often", dependencies, [
      "UNAVAILABLE",
    ]),
    504: answerOf("A service behind did not answer in time", dependencies, ["TIMEOUT"]),
  };
}

function answerOf(description: string, dependencies: Dependency[], failures: Failure[]) {
  const codes = dependencies.flatMap((dependency) =>
    failures.map((failure): DependencyCode => `${dependency}_${failure}`)
  );
  return errorAnswer<ErrorCode>(
    description,
    Object.fromEntries(codes.map((code) => [code, messageOf(code)])),
  );
}

// The refusals of a service behind, by their status.
export function refusalsOf(...codes: ErrorCode[]): Answers {
  const answers = Map.groupBy(codes, (code) => statusOfCode[code]).entries().map(
    ([status, ofStatus]) => {
      const messages = Object.fromEntries(ofStatus.map((code) => [code, messageOf(code)]));
      return [status, errorAnswer<ErrorCode>("As the service behind says", messages)];
    },
  );
  return Object.fromEntries(answers);
}

const messageOf = (code: string) => code.toLowerCase().replaceAll("_", " ");
