// The four tables that a change writes, read in the form and the order of the model.
import pg from "pg";

export interface Tables {
  entitlements: EntitlementRow[];
  keys: KeyRow[];
  events: EventRow[];
  audit: AuditRow[];
}

export interface EntitlementRow {
  user_id: string;
  stock_keeping_unit: string;
  status: string;
  granted_at: string | null;
  revoked_at: string | null;
  source: string;
  source_id: string;
  version: number;
  updated_at: string;
}

export interface KeyRow {
  idem_key: string;
  response_code: number;
  response_body: string;
  valid_hours: number;
}

export interface EventRow {
  aggregate_key: string;
  event_type: string;
  created_at: string;
  payload: Record<string, unknown>; // without event_id
  same_id: boolean; // the payload and the column have the same id
}

export interface AuditRow {
  user_id: string;
  stock_keeping_unit: string;
  occurred_at: string;
  action: string;
  source: string;
  source_id: string;
  request_id: string;
  detail: Record<string, unknown>;
}

const asText = `'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'`;

/** Reads the rows of one run, whose users and keys begin with the same prefix. */
export async function readTables(owner: pg.Client, prefix: string): Promise<Tables> {
  await owner.query("set timezone = 'UTC'");
  const [entitlements, keys, events, audit] = [
    await owner.query<EntitlementRow>(
      `select user_id, stock_keeping_unit, status,
         to_char(granted_at, ${asText}) as granted_at, to_char(revoked_at, ${asText}) as revoked_at,
         source, source_id, version::int, to_char(updated_at, ${asText}) as updated_at
       from entitlements
       where starts_with(user_id, $1)
       order by user_id, stock_keeping_unit`,
      [prefix],
    ),
    await owner.query<KeyRow>(
      `select idem_key, response_code, response_body,
         extract(epoch from expires_at - created_at)::float8 / 3600 as valid_hours
       from idempotency_keys
       where starts_with(idem_key, $1)
       order by idem_key`,
      [prefix],
    ),
    await owner.query<EventRow>(
      `select aggregate_key, event_type, to_char(created_at, ${asText}) as created_at,
         payload - 'event_id' as payload, payload->>'event_id' = event_id::text as same_id
       from outbox_events
       where starts_with(aggregate_key, $1)
       order by aggregate_key, outbox_events.created_at`,
      [prefix],
    ),
    await owner.query<AuditRow>(
      `select user_id, stock_keeping_unit, to_char(occurred_at, ${asText}) as occurred_at,
         action, source, source_id, request_id, detail
       from entitlement_audit
       where starts_with(user_id, $1)
       order by user_id, stock_keeping_unit, entitlement_audit.occurred_at`,
      [prefix],
    ),
  ];
  return {
    entitlements: entitlements.rows,
    keys: keys.rows,
    events: events.rows,
    audit: audit.rows,
  };
}
