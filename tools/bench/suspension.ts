// How long a suspended person is still admitted: from the commit of the suspension to the last 200, on
// two replicas that get 200 requests/s of that person together.
import { withClient } from "../servers/asking.ts";
import { changeAtPace as atPace } from "./latency.ts";
import { type GatewayStage, getMe, type Person, startGatewayStage } from "./gateway_stage.ts";
import type { Bench, Work } from "./work.ts";

const perSecond = 200;
const replicas = 2;
const suspensions = 5; // in each round
const rounds = 6;

export async function startSuspension({ servers }: Bench): Promise<Work> {
  const people = suspensions * rounds;
  const stage = await startGatewayStage(servers, "suspension", { people, replicas });
  let next = 0;
  return {
    unit: "requests/s",
    atMost: { "last 200 after the commit, max ms": 100 },
    measure: async () => {
      const [late, rates]: [number[], number[]] = [[], []];
      for (let i = 0; i < suspensions; i++) {
        const person = stage.people[next++];
        if (!person) throw new Error("Everybody is suspended");
        const { lastMs, rate } = await suspend(stage, person);
        late.push(lastMs);
        rates.push(rate);
      }
      return {
        perSecond: Math.min(...rates),
        figures: { "last 200 after the commit, max ms": Math.max(...late) },
      };
    },
    limits: [],
    [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose](),
  };
}

async function suspend(
  { account, ownerUrl, gateways }: GatewayStage,
  person: Person,
): Promise<{ lastMs: number; rate: number }> {
  const admitted = [0, 0]; // when each replica answered the last 200, by the clock of the machine
  const refused = [0, 0];
  const ask = async (i: number) => {
    const replica = i % replicas;
    const status = await getMe(gateways[replica]?.url ?? "", person);
    if (status === 200) admitted[replica] = Date.now();
    else if (status === 403) refused[replica] = (refused[replica] ?? 0) + 1;
    else throw new Error(`/v1/me answers ${status}`);
  };
  const requests = perSecond; // for a second, in the middle of which the person is suspended
  const answered = atPace({ changes: requests, perSecond }, ask);
  await new Promise((half) => setTimeout(half, 400));
  const answer = await fetch(`${account.url}/v1/users/${person.userId}:suspend`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ reason: "bench" }),
  });
  if (answer.status !== 204) throw new Error(`The suspension failed: ${await answer.text()}`);
  const seconds = await answered;
  if (refused.includes(0)) throw new Error("A replica never refused the suspended person");
  const committed = await committedAt(ownerUrl, person);
  return { lastMs: Math.max(...admitted) - committed, rate: requests / seconds };
}

/** An audit entry is never changed, so its transaction is the one that suspended. */
function committedAt(ownerUrl: string, { userId }: Person): Promise<number> {
  return withClient(ownerUrl, async (owner) => {
    const { rows } = await owner.query<{ at: number }>(
      `select extract(epoch from pg_xact_commit_timestamp(xmin))::float8 * 1000 as at
       from audit_logs
       where user_id = $1 and action = 'SUSPEND'`,
      [userId],
    );
    if (rows.length !== 1) throw new Error(`${rows.length} suspensions are in the audit`);
    return rows[0]?.at ?? NaN;
  });
}
