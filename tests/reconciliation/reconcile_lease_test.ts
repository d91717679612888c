// A run of the reconciliation belongs to one replica at a time. The replica extends its lease while
// it works, and writes nothing once it has lost the lease.
import assert from "node:assert/strict";
import { grant } from "../support/api.ts";
import { untilSent } from "../support/notification.ts";
import { collectingLog } from "../support/relays.ts";
import { startLoop } from "./reconciled.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { inTime, until } from "../../tools/servers/wait.ts";

const settings = { entitlement: { ENTITLEMENT_RECONCILE_ENABLED: "false" } };

Deno.test("a replica that was delayed for longer than its lease writes nothing more", async () => {
  await using stack = await startStack(settings);
  await prepare(stack);
  await using slow = startReplica(stack);
  await inTime("the slow one asks", slow.asks.promise);
  await using next = startReplica(stack);
  await new Promise((over) => setTimeout(over, 1_000)); // it checks five times a second
  assert.ok(!next.hasAsked(), "while the lease holds the run is the slow one's");
  await stack.entitlement.rows("update reconciliation set leased_until = now() - interval '1 s'");
  await inTime("the next one asks", next.asks.promise);
  const before = await stateOf(stack);
  slow.answer();
  await until("the slow one notices", () => slow.log.length > 0);
  assert.deepEqual(slow.log, [
    "warn Reconciliation postponed: the run outlasted its lease, and another replica has taken over",
  ]);
  assert.deepEqual(await stateOf(stack), before);
  next.answer();
  await until(
    "the next one has finished",
    async () => (await stateOf(stack)).leased_until === null,
  );
  const { checked_at, proven_until } = await stateOf(stack);
  assert.ok(checked_at > before.checked_at && proven_until > before.proven_until);
  assert.deepEqual(next.log, []);
});

Deno.test("the lease is also extended with each page of open events", async () => {
  await using stack = await startStack(settings);
  await prepare(stack);
  await stack.entitlement.rows(
    `insert into unreceived_events
       (event_id, occurred_at, user_id, stock_keeping_unit, version, state)
     select gen_random_uuid(), now(), 'ann', 'book', n, 'MISSING' from generate_series(1, 2500) as n`,
  );
  const leases: string[] = [];
  await using replica = startReplica(stack, async () => {
    leases.push((await stateOf(stack)).leased_until ?? "");
  });
  replica.answer();
  await until("it has finished", async () => {
    return leases.length > 3 && (await stateOf(stack)).leased_until === null;
  });
  const firstPages = leases.slice(0, 4); // three pages of open events and one of the audit
  assert.deepEqual(firstPages, [...new Set(firstPages)].sort(), "each later than the one before");
  assert.deepEqual(replica.log.filter((line) => line.startsWith("warn")), []);
});

// The run is taken over at the last moment, by a trigger, because no other replica could be so
// quick.
for (const write of ["settled a page", "saved its progress"]) {
  Deno.test(`a replica that loses its lease just after it has ${write} writes nothing more`, async () => {
    await using stack = await startStack(settings);
    await prepare(stack);
    const { entitlement } = stack;
    const [table, event] = write === "settled a page"
      ? ["unreceived_events", "delete"]
      : ["reconciliation", "update of proven_until"];
    await entitlement.rows(
      `create function take_over() returns trigger language plpgsql security definer as $$
       begin
         update reconciliation set leased_until = '2100-01-01T00:00:00Z';
         return null;
       end $$;
       create trigger taken_over after ${event} on ${table} execute function take_over()`,
    );
    const before = await stateOf(stack);
    await using replica = startReplica(stack);
    replica.answer();
    await until("it notices", () => replica.log.length > 0);
    assert.match(replica.log[0] ?? "", /outlasted its lease/);
    const after = await stateOf(stack);
    assert.equal(after.checked_at, before.checked_at);
    assert.equal(after.leased_until, "2100-01-01 00:00:00+00");
    const isProven = after.proven_until !== before.proven_until;
    assert.equal(isProven, write === "saved its progress");
  });
}

interface State {
  proven_until: string;
  checked_at: string;
  leased_until: string | null;
}

async function stateOf({ entitlement }: Stack): Promise<State> {
  const [state] = await entitlement.rows<State>(
    `select proven_until::text, checked_at::text, leased_until::text from reconciliation`,
  );
  assert.ok(state);
  return state;
}

/** Makes a change to check, and a run due. */
async function prepare({ entitlement, place }: Stack): Promise<void> {
  await grant(entitlement.url);
  await untilSent(place, 1);
  await entitlement.rows("update reconciliation set checked_at = now() - interval '1 day'");
}

interface Replica extends AsyncDisposable {
  log: string[];
  asks: PromiseWithResolvers<void>; // its first question
  hasAsked(): boolean;
  answer(): void; // until then its questions are not answered
}

function startReplica(stack: Stack, onAsk = () => Promise.resolve()): Replica {
  const collecting = collectingLog();
  const asks = Promise.withResolvers<void>();
  let hasAsked = false;
  const answered = Promise.withResolvers<void>();
  const stopping = new AbortController();
  const running = startLoop(stack, stopping.signal, collecting, (receiver) => async (ids) => {
    hasAsked = true;
    asks.resolve();
    await answered.promise;
    await onAsk();
    return await receiver(ids);
  });
  return {
    log: collecting.lines,
    asks,
    hasAsked: () => hasAsked,
    answer: () => answered.resolve(),
    async [Symbol.asyncDispose]() {
      stopping.abort();
      answered.resolve();
      await running;
    },
  };
}
