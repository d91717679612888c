// Orders past their retention, and the ledger, which is kept for longer.
import assert from "node:assert/strict";
import { cleanNotification } from "../../notification/retention.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { ask } from "../../tools/servers/asking.ts";
import { freshPlace } from "../support/notification.ts";
import { collectingLog } from "../support/relays.ts";

const never = new AbortController().signal;
const ledgerTtlMs = 400 * 86_400_000;

Deno.test("finished orders go with their attempts, and the ledger keeps how they ended for longer", async () => {
  await using place = await freshPlace();
  const database = openDatabase(place.serviceUrl, "test");
  await using _database = { [Symbol.asyncDispose]: () => database.end() };
  for (
    const [status, age] of [["SUCCEEDED", 31], ["ABORTED", 31], ["SUCCEEDED", 29], ["PARKED", 31]]
  ) {
    await ask(
      place.ownerUrl,
      `with written as (
         insert into outbox_orders
           (id, idempotency_key, caller, adapter, order_request_json, request_digest, lane,
            aggregate_key, position, status, trace_id, finished_at, last_error_code)
         values (gen_random_uuid(), gen_random_uuid(), '', 'http', '{}', 'd', 'l', gen_random_uuid(),
           1, $1::text, 't', case when $1::text <> 'PARKED' then now() - make_interval(days => $2) end,
           case when $1::text = 'ABORTED' then 'ENDPOINT_DELETED' end)
         returning id
       )
       insert into order_attempts (id, outcome) select id, 'SUCCEEDED' from written`,
      [status, age],
    );
  }
  for (const age of [399, 401]) {
    await ask(
      place.ownerUrl,
      `insert into idempo_ledger (idempotency_key, request_digest, status, decided_at)
       values ($1, 'd', 'SUCCEEDED', now() - make_interval(days => $2))`,
      [`${age}`, age],
    );
  }
  await cleanNotification(database, { days: 30, ledgerTtlMs }, collectingLog().log, never);
  const counts = `select (select count(*)::int from outbox_orders) as orders,
    (select count(*)::int from order_attempts) as attempts,
    (select count(*)::int from idempo_ledger) as entries`;
  assert.deepEqual(await ask(place.ownerUrl, counts), [{ orders: 2, attempts: 2, entries: 1 }]);
});
