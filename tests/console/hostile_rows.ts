// Rows with hostile texts, and the pages that show those of points.
import { ask, type Entitlement } from "../support/entitlement.ts";
import type { Stack } from "../support/stack.ts";
import { grantPoints, inMs, reserve } from "../support/points.ts";

/** Writes what a channel, a broker or another release could have written. */
export async function spoilTables({ entitlement, place }: Stack, hostile: string[]): Promise<void> {
  const { database } = entitlement;
  for (const [i, text] of hostile.entries()) {
    await ask(
      place.ownerUrl,
      `with numbered as (
         select notification_id, row_number() over (order by dlq_id) as number
         from notification_dlq)
       update notification_dlq dead set error_message = $1
       from numbered
       where numbered.notification_id = dead.notification_id and number = $2`,
      [`${text}\u0001\u001b[2J`, i + 1],
    );
    await ask(
      database.ownerUrl,
      `insert into outbox_events
         (event_id, event_type, aggregate_key, payload, status, last_error, locked_by)
       values (gen_random_uuid(), $1, $1, jsonb_build_object($1::text, $1), 'FAILED', $1, $1)`,
      [text],
    );
    await ask(
      database.ownerUrl,
      `insert into outbox_events
         (event_id, event_type, aggregate_key, payload, next_retry_at, last_error)
       values (gen_random_uuid(), $1, $1, '{}', now() + interval '1 h', $1)`,
      [text],
    );
    await storeHostilePoints(entitlement, text);
    await ask(
      database.ownerUrl,
      `insert into unreceived_events
         (event_id, occurred_at, user_id, stock_keeping_unit, version, state)
       values (gen_random_uuid(), now(), $1, $1, 1, 'MISSING')`,
      [text],
    );
  }
}

async function storeHostilePoints(
  { url, database: { ownerUrl } }: Entitlement,
  text: string,
): Promise<void> {
  const fields = { user_id: text, reason: text, source_id: text };
  await grantPoints(url, fields);
  await reserve(url, { ...fields, execute_at: inMs(3_600_000) });
  // One is late, one waits for another attempt, and one failed for good.
  await ask(
    ownerUrl,
    `insert into point_reservations
       (id, kind, caller, idempotency_key, user_id, stock_keeping_unit, source, source_id,
        execute_at, next_retry_at, trace_id, aggregate_key, position, status, attempt_count,
        last_error, locked_by, lease_until, created_at, updated_at)
     select id, 'GRANT', $1, id, $1, $1, $1, $1, now(), next, $1, $1, id, state, 3, $1, $1,
       now() + interval '1 day', now(), now()
     from (select gen_random_uuid() as id, state, next
           from (values ('PROCESSING', null), ('PENDING', now() + interval '1 h'), ('FAILED', null))
             as given (state, next)) as rows`,
    [text],
  );
}

export function pagesOfPoints(
  query: (given: Record<string, string>) => string,
  text: string,
): string[] {
  return [
    "/console/points",
    `/console/points${query({ user_id: text })}`,
    `/console/points${query({ user_id: text, unit: text, cursor: text })}`,
    `/console/timeline${query({ by: "reservation_id", q: text })}`,
    "/console/dead-letters?layer=reservation",
    `/console/dead-letters${query({ layer: "reservation", error: text })}`,
    `/console/dead-letters/send-back${query({ layer: "reservation", error: text })}`,
  ];
}
