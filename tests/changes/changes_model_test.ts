// Many clients change the same few users under the same few keys at once. A serial order must
// explain every answer, and the tables must contain exactly what that order leads to.
import assert from "node:assert/strict";
import fc from "fast-check";
import type pg from "pg";
import type { ChangeRequest } from "../../tools/load/change_request.ts";
import { type Observation, sendChange, startReplicas, transactionsIn } from "../support/changes.ts";
import { explain } from "./changes_model.ts";
import { readTables } from "./changes_tables.ts";
import { freshDatabase, withClient } from "../support/databases.ts";

interface Step {
  key: number;
  action: ChangeRequest["action"];
  user: number;
  sku: number;
  variant: number; // selects the other fields of the body
  replica: number;
  copies: number; // sent at the same time, to the replicas in turn
}

/** What each client does, one step after the other. */
type Plan = Step[][];

interface Sizes {
  clients: number;
  steps: number;
  keys: number;
  users: number;
  skus: number;
}

function plans({ clients, steps, keys, users, skus }: Sizes, exactly = false): fc.Arbitrary<Plan> {
  const below = (end: number) => fc.nat({ max: end - 1 });
  const any = fc.record({
    key: below(keys),
    action: fc.constantFrom("GRANT", "REVOKE"),
    user: below(users),
    sku: below(skus),
    variant: below(2),
    replica: below(2),
    copies: fc.constantFrom(1, 1, 1, 2, 5),
  });
  // Most keys are reused for the same request, so that there are replays.
  const faithful = any.map((step): Step => ({
    ...step,
    action: step.key % 2 === 0 ? "GRANT" : "REVOKE",
    user: step.key % users,
    sku: Math.floor(step.key / users) % skus,
    variant: 0,
  }));
  const step = fc.oneof({ arbitrary: faithful, weight: 3 }, { arbitrary: any, weight: 2 });
  const atLeast = (size: number) => exactly ? size : 1;
  return fc.array(
    fc.array(step, { minLength: atLeast(steps), maxLength: steps, size: "max" }),
    { minLength: atLeast(clients), maxLength: clients, size: "max" },
  );
}

async function carryOut(plan: Plan, urls: string[], prefix: string): Promise<Observation[]> {
  const clients = plan.map(async (steps) => {
    const seen: Observation[] = [];
    for (const step of steps) {
      const request = toRequest(step, prefix);
      const copies = Array.from(
        { length: step.copies },
        (_, i) => sendChange(urls[(step.replica + i) % urls.length] as string, request),
      );
      seen.push(...await Promise.all(copies));
    }
    return seen;
  });
  return (await Promise.all(clients)).flat();
}

function toRequest({ key, action, user, sku, variant }: Step, prefix: string): ChangeRequest {
  return {
    key: `${prefix}key-${key}`,
    action,
    user: `${prefix}user-${user}`,
    sku: `sku-${sku}`,
    reason: `reason ${variant}`,
    purchase: `purchase of key ${key}`,
  };
}

let runs = 0;

async function holds(plan: Plan, urls: string[], owner: pg.Client): Promise<Observation[]> {
  const prefix = `run-${runs++}-`;
  const observations = await carryOut(plan, urls, prefix);
  for (const { answer } of observations) {
    assert.ok(answer && [200, 409].includes(answer.status), JSON.stringify(answer));
  }
  assert.deepEqual(await readTables(owner, prefix), explain(observations));
  return observations;
}

Deno.test("the answers to a few clients on two replicas can be explained by a serial order", async () => {
  await using database = await freshDatabase("entitlement");
  await using service = await startReplicas(2, database.serviceUrl);
  const small = { clients: 6, steps: 6, keys: 5, users: 2, skus: 2 };
  await withClient(database.ownerUrl, async (owner) => {
    await fc.assert(
      fc.asyncProperty(plans(small), async (plan) => void await holds(plan, service.urls, owner)),
      { numRuns: 60 },
    );
  });
});

Deno.test("so can the answers to 64 clients with hot users, without a deadlock or a failed commit", async () => {
  await using database = await freshDatabase("entitlement");
  await using service = await startReplicas(2, database.serviceUrl);
  const large = { clients: 64, steps: 40, keys: 500, users: 3, skus: 2 };
  const [plan = []] = fc.sample(plans(large, true), { seed: 20_250_101, numRuns: 1 });
  const observations = await withClient(
    database.ownerUrl,
    (owner) => holds(plan, service.urls, owner),
  );
  const kinds = Map.groupBy(observations, ({ answer }) => kindOf(answer?.body, answer?.replayed));
  for (const kind of ["change", "change again", "refusal", "refusal again", "key conflict"]) {
    const count = kinds.get(kind)?.length ?? 0;
    assert.ok(count > 50, `only ${count} answers were a ${kind}, so the run shows little`);
  }
  await service.stop();
  assert.deepEqual(await transactionsIn(database.ownerUrl), { rolledBack: 0, deadlocks: 0 });
});

function kindOf(body = "{}", replayed = false): string {
  const code = JSON.parse(body).code;
  if (code === "IDEMPOTENCY_KEY_CONFLICT") return "key conflict";
  return `${code === undefined ? "change" : "refusal"}${replayed ? " again" : ""}`;
}
