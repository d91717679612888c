import { type Answer, refusal } from "@kenri/shared/commands/answer.ts";
import type { Command } from "@kenri/shared/commands/command.ts";
import type { Key, Sender } from "@kenri/shared/commands/route.ts";
import { type Identity, storedKeyOf } from "@kenri/shared/commands/stored_answers.ts";
import { pathPart } from "@kenri/shared/http/route.ts";
import { query, type Transaction, utc } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { uuidPattern } from "@kenri/shared/process/uuid.ts";
import type { HonoRequest } from "hono";
import { statusOfCode } from "../errors.ts";
import { type Endpoint, endpointColumns, noEndpoint } from "./endpoint.ts";

// What all commands on an endpoint have in common: it is found and locked for its caller, and one
// command at a time changes it.

export interface OnEndpoint extends Sender {
  id: string;
}

export interface Found {
  now: string;
  found: Endpoint | undefined; // of this caller
}

// How long a repeated request gets the first answer.
export const answerTtlMs = 24 * 3_600_000;

export const key: Key = {
  advice: "without it, a repeated request is carried out again",
  example: "request-1",
  isOptional: true,
};

export function onEndpoint(sender: Sender, req: HonoRequest): OnEndpoint {
  return { ...sender, id: pathPart(req, "endpoint_id").toLowerCase() };
}

// Undefined for a request without a key.
export function identityOf(sender: Sender, request: Identity["request"]): Identity | undefined {
  return sender.idempotencyKey === "" ? undefined : { key: storedKeyOf(sender), request };
}

export const ofOneEndpoint = {
  answerTtlMs,
  locksOf: ({ id }: OnEndpoint): string[] => [JSON.stringify(["endpoint", id])],
} satisfies Partial<Command<OnEndpoint, never, never>>;

export const notFound: Answer = refusal(statusOfCode, "state_conflict", "NOT_FOUND", noEndpoint);

export function stateConflict(message: string): Answer {
  return refusal(statusOfCode, "state_conflict", "ENDPOINT_STATE_CONFLICT", message);
}

// Locked, because the health of an endpoint changes without the lock of the command.
export async function lockEndpoints(tx: Transaction, inputs: OnEndpoint[]): Promise<Found[]> {
  const ids = inputs.map(({ id }) => id).filter((id) => uuidPattern.test(id));
  const rows = await query<Endpoint & { caller: string; now: string }>(
    tx,
    sql`
    select ${endpointColumns}, caller, ${utc(sql`clock_timestamp()`)} as now
    from endpoints
    where endpoint_id = any(${ids}::uuid[])
      and state <> 'DELETED'
    order by endpoint_id
    for update`,
  );
  const byId = new Map(rows.map((row) => [row.endpoint_id, row]));
  return inputs.map(({ id, caller }) => {
    const row = byId.get(id);
    if (row?.caller !== caller) return { now: "", found: undefined };
    const { caller: _, now, ...found } = row;
    return { now, found };
  });
}
