import { type Database, query, type Transaction } from "../postgres/postgres.ts";
import { failsUnless, sql } from "../postgres/sql.ts";
import type { OldRows } from "../process/retention.ts";
import { sha256 } from "../process/sha256.ts";
import type { Answer } from "./answer.ts";

// The answers that were given under an Idempotency-Key. Every database that commands change has the
// table idempotency_keys:
//
//   idem_key        the stored key: see storedKeyOf
//   request_hash    identifies the request, so that another one under the same key is a conflict
//   response_code, response_body    the answer, which is repeated byte for byte
//   created_at, expires_at          an expired answer does not count, and may be overwritten

// What an answer is stored under.
export interface Identity {
  key: string; // see storedKeyOf
  // What a repeated request has in common with the first. Two commands never have the same, because
  // it begins with the name of the command.
  request: readonly [command: string, ...fields: unknown[]];
}

// The Idempotency-Key as it is stored and locked. Each caller has keys of its own: a key contains
// no space, so it can't look like that of another caller.
export function storedKeyOf(
  { caller, idempotencyKey }: { caller: string; idempotencyKey: string },
): string {
  return caller === "" ? idempotencyKey : `${caller} ${idempotencyKey}`;
}

export interface StoredAnswer {
  request_hash: string;
  response_code: number;
  response_body: string;
}

// Returns the valid answers by their keys. Such an answer does not change, so it may be read without
// the lock of its key. But one that is not found without the lock may be about to be committed.
export async function findAnswers(
  on: Database | Transaction,
  keys: string[],
): Promise<Map<string, StoredAnswer>> {
  if (keys.length === 0) return new Map();
  const found = await query<StoredAnswer & { idem_key: string }>(
    on,
    sql`
    select idem_key, request_hash, response_code, response_body
    from idempotency_keys
    where idem_key = any(${keys})
      and expires_at > now()`,
  );
  return new Map(found.map((stored) => [stored.idem_key, stored]));
}

// The stored answer again, if it belongs to the same request.
export function replayOf(stored: StoredAnswer, identity: Identity): Answer | undefined {
  if (stored.request_hash !== hashOf(identity)) return undefined;
  const { response_code, response_body } = stored;
  return { status: response_code, body: response_body, outcome: "replayed" };
}

function hashOf({ request }: Identity): string {
  return sha256(JSON.stringify(request));
}

export interface AnswerToStore {
  identity: Identity;
  answer: Answer;
}

// Only an expired answer may be overwritten. Every other one was found under the lock, so if a row
// can't be written, the lock did not hold and nothing may be committed.
export async function storeAnswers(
  tx: Transaction,
  answers: AnswerToStore[],
  ttlMs: number,
): Promise<void> {
  if (answers.length === 0) return;
  const rows = answers.map(({ identity, answer }) => ({
    idem_key: identity.key,
    request_hash: hashOf(identity),
    response_code: answer.status,
    response_body: answer.body,
  }));
  await query(
    tx,
    sql`
    with saved as (
      insert into idempotency_keys as stored
        (idem_key, request_hash, response_code, response_body, created_at, expires_at)
      select idem_key, request_hash, response_code, response_body, now(),
        now() + make_interval(secs => ${ttlMs}::float8 / 1000)
      from json_to_recordset(${JSON.stringify(rows)}) as (
        idem_key text, request_hash text, response_code smallint, response_body text)
      on conflict (idem_key) do update set
        request_hash = excluded.request_hash,
        response_code = excluded.response_code,
        response_body = excluded.response_body,
        created_at = excluded.created_at,
        expires_at = excluded.expires_at
      where stored.expires_at <= now()
      returning 1
    )
    ${
      failsUnless(rows.length, sql`saved`, "Another answer was stored under a key that was locked")
    }`,
  );
}

export const expiredAnswers: OldRows = {
  table: "idempotency_keys",
  id: "idem_key",
  condition: `expires_at <= now()
       order by expires_at`,
};
