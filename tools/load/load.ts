// Clients that grant and revoke until they are stopped. Each changes only its own entitlements, so it
// knows which version the answer must have.
import assert from "node:assert/strict";
import { aggregateKeyOf } from "../../proto/entitlement/aggregate_key.ts";
import { until } from "../servers/wait.ts";
import { type ChangeRequest, grant, toHttp } from "./change_request.ts";
import { RepeatingClient } from "./repeating_client.ts";

export interface Change {
  key: string; // the aggregate key
  version: number;
}

export interface Load extends AsyncDisposable {
  client: RepeatingClient;
  changes: Change[]; // acknowledged ones
  goesOn(more: number): Promise<void>;
  stop(): Promise<Change[]>;
}

const takenWithinMs = 120_000; // enough for outages and elections on a busy machine
const thinkMs = 40; // between two changes of one client, so that the test machine keeps up

export function startLoad(urls: string[], prefix = "user", clients = 8): Load {
  const client = new RepeatingClient(urls);
  const changes: Change[] = [];
  const problems: unknown[] = [];
  let stopped = false;
  const work = async (user: string) => {
    for (let count = 0; !stopped; count++) {
      const change = changeOf(user, count);
      // Sometimes the same request goes to two replicas at once, as from an impatient client.
      const sent = count % 5 === 0 ? [change, change] : [change];
      await Promise.all(sent.map((change) => send(client, change)));
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
    client,
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

function changeOf(user: string, count: number): ChangeRequest & Pick<Change, "version"> {
  const version = Math.floor(count / 2) + 1;
  const sku = `sku-${count % 2}`;
  const action = version % 2 === 1 ? "GRANT" : "REVOKE";
  return { ...grant({ key: `${user}-${count}`, action, user, sku }), version };
}

async function send(
  client: RepeatingClient,
  { version, ...request }: ReturnType<typeof changeOf>,
): Promise<void> {
  const answer = (await client.ask(toHttp(request))).at(-1)?.answer;
  assert.equal(answer?.status, 200);
  assert.equal(JSON.parse(answer.body).version, version);
}
