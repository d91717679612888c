// Clients that grant and revoke until they are stopped. Each changes what is its own, so it knows
// which version the answer must have.
import assert from "node:assert/strict";
import { aggregateKeyOf } from "../../proto/entitlement/aggregate_key.ts";
import { type Caller, startCaller } from "./caller.ts";
import { grant, toHttp } from "../../tests/support/changes.ts";
import { until } from "../servers/wait.ts";

export interface Change {
  key: string; // user and item, as aggregate_key has them
  version: number;
}

export interface Load extends AsyncDisposable {
  caller: Caller;
  changes: Change[]; // acknowledged ones
  goesOn(more: number): Promise<void>;
  stop(): Promise<Change[]>;
}

const takenWithinMs = 120_000; // through outages and elections, on a busy machine
const thinkMs = 40; // between two changes of one client, so that the test machine keeps up

export function startLoad(urls: string[], prefix = "user", clients = 8): Load {
  const caller = startCaller(urls);
  const changes: Change[] = [];
  const problems: unknown[] = [];
  let stopped = false;
  const work = async (user: string) => {
    for (let count = 0; !stopped; count++) {
      const change = changeOf(user, count);
      // An impatient client sends the same at once to another replica.
      const sent = count % 5 === 0 ? [change, change] : [change];
      await Promise.all(sent.map((change) => send(caller, change)));
      changes.push({ key: aggregateKeyOf(user, change.sku), version: change.version });
      await new Promise((again) => setTimeout(again, thinkMs));
    }
  };
  const working = Array.from(
    { length: clients },
    (_, client) => work(`${prefix}-${client}`).catch((error) => problems.push(error)),
  );
  const check = () => {
    if (problems.length > 0) throw problems[0];
  };
  const end = async () => {
    stopped = true;
    await Promise.all(working);
  };
  return {
    caller,
    changes,
    async goesOn(more) {
      const enough = changes.length + more;
      await until("changes are acknowledged", () => {
        check();
        return changes.length >= enough;
      }, takenWithinMs);
    },
    async stop() {
      await end();
      check();
      return changes;
    },
    [Symbol.asyncDispose]: end,
  };
}

function changeOf(user: string, count: number) {
  const version = Math.floor(count / 2) + 1;
  const sku = `sku-${count % 2}`;
  const action = version % 2 === 1 ? "GRANT" as const : "REVOKE" as const;
  return { ...grant({ key: `${user}-${count}`, action, user, sku }), version };
}

async function send(caller: Caller, change: ReturnType<typeof changeOf>): Promise<void> {
  const { url, method, headers, body } = toHttp("http://any", change, crypto.randomUUID());
  const text = await new Response(body).text();
  const answer = await caller.call(new URL(url).pathname, { method, headers, body: text });
  assert.equal(answer.status, 200);
  assert.equal((await answer.json()).version, change.version);
}
