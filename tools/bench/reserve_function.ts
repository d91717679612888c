// The same work as a reservation over HTTP, done by one function inside PostgreSQL.
import { createHash } from "node:crypto";
import { lockNumber } from "../../shared/commands/locks.ts";
import { utc } from "../../shared/postgres/postgres.ts";
import { uuidv7 } from "../../shared/process/uuid.ts";
import { withClient } from "../servers/asking.ts";
import { inOneYear } from "../load/sockets.ts";
import type { DatabaseUrls } from "../load/stage.ts";
import { expectRows } from "./database.ts";
import type { ServerFunction } from "./function_per_commit.ts";

const executeAt = inOneYear();

export const reserveFunction: ServerFunction = {
  make: makeFunction,
  call: "select bench_reserve($1, $2, $3, $4, $5, $6, $7, $8, $9)",
  values,
  assertDone,
};

function makeFunction(database: DatabaseUrls): Promise<unknown> {
  return withClient(database.ownerUrl, (owner) =>
    owner.query(`
      create function bench_reserve(
        wanted_user text, amount bigint, due text, key text, hash text, reservation uuid,
        trace text, parent text, key_lock bigint
      ) returns text language plpgsql as $$
      declare
        known idempotency_keys;
        answer text;
      begin
        perform pg_advisory_xact_lock(key_lock);
        select * into known from idempotency_keys where idem_key = key and expires_at > now();
        if found then
          return known.response_body;
        end if;
        perform from point_transactions where idempotency_key = key;
        if found then
          raise exception 'the key is in use';
        end if;
        answer := json_build_object(
          'reservation_id', reservation, 'user_id', wanted_user, 'unit', 'points',
          'point_amount', amount, 'execute_at', ${utc("due::timestamptz")}, 'status', 'PENDING',
          'created_at', ${utc("now()")})::text;
        insert into point_reservations
          (id, kind, caller, idempotency_key, user_id, unit, point_amount, execute_at, trace_id,
           traceparent, aggregate_key, position, created_at, updated_at)
        values (reservation, 'POINTS', '', key, wanted_user, 'points', amount, due::timestamptz,
          trace, parent, reservation, due || ' ' || reservation, now(), now());
        insert into idempotency_keys as stored
          (idem_key, request_hash, response_code, response_body, created_at, expires_at)
        values (key, hash, 202, answer, now(), now() + interval '24 hours')
        on conflict (idem_key) do update set
          request_hash = excluded.request_hash, response_code = excluded.response_code,
          response_body = excluded.response_body, created_at = excluded.created_at,
          expires_at = excluded.expires_at
        where stored.expires_at <= now();
        return answer;
      end $$`));
}

function values(number: number): string[] {
  const [user, key] = [`user-${number}`, `key-${number}`];
  const identity = JSON.stringify(["RESERVE POINTS", user, "points", 10, executeAt]);
  const hash = createHash("sha256").update(identity).digest("hex");
  const trace = hash.slice(0, 32);
  return [
    ...[user, "10", executeAt, key, hash, uuidv7(), trace],
    ...[`00-${trace}-${hash.slice(0, 16)}-01`, `${lockNumber(key)}`],
  ];
}

async function assertDone(database: DatabaseUrls, reserved: number): Promise<void> {
  for (
    const from of [
      "point_reservations where status = 'PENDING' and point_amount = 10",
      "idempotency_keys where response_code = 202",
    ]
  ) await expectRows(database, reserved, from);
}
