// `deno task ops reconcile` over several pages, and its exit code.
import assert from "node:assert/strict";
import { ask } from "../support/entitlement.ts";
import { startStack } from "../support/stack.ts";
import { ops } from "./ops.ts";

Deno.test("reconcile adds up the pages, and a single missing event is a problem", async () => {
  await using stack = await startStack({
    entitlement: { ENTITLEMENT_RECONCILE_ENABLED: "false", ENTITLEMENT_RETENTION_ENABLED: "false" },
  });
  // More than two pages of changes whose events were lost an hour ago, and a later one.
  await ask(
    stack.entitlement.database.ownerUrl,
    `insert into entitlement_audit
       (audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id, request_id,
        detail)
     select gen_random_uuid(),
       now() - case when n = 0 then interval '20 minutes' else interval '1 hour' end,
       'user-' || n, 'book', 'GRANT', 'purchase', 'p-1', 'r-' || n, '{"version": 1}'
     from generate_series(0, 2200) as n`,
  );
  const reconcile = async (since: string) => {
    const { code, output } = await ops(
      stack,
      ...["reconcile", "--since", since, "--grace", "0", "--dry-run", "--json"],
    );
    const { checked, states } = JSON.parse(output);
    return { code, checked, states };
  };
  assert.deepEqual(await reconcile("10m"), { code: 0, checked: 0, states: {} });
  assert.deepEqual(await reconcile("30m"), { code: 1, checked: 1, states: { MISSING: 1 } });
  assert.deepEqual(await reconcile("2h"), { code: 1, checked: 2_201, states: { MISSING: 2_201 } });
});
