// A command of its own, with tables of its own: somebody pays from a wallet, perhaps to another one.
// Standing orders are rows that are carried out without a request.
import { type Answer, type Decision, refusal } from "../../shared/commands/answer.ts";
import type { Command } from "../../shared/commands/command.ts";
import { storedKeyOf } from "../../shared/commands/stored_answers.ts";
import { query, type Transaction } from "../../shared/postgres/postgres.ts";
import { sql } from "../../shared/postgres/sql.ts";
import { ask, withClient } from "../../tools/servers/asking.ts";
import { type Opened, openFresh } from "../support/databases.ts";

export interface Payment {
  from: string;
  to?: string;
  amount: number;
  note: string; // the database refuses an empty one, which decide does not know
  caller: string;
  idempotencyKey: string;
  traceparent: string | null;
  order?: { id: string; token: string }; // the standing order that this is
}

export interface Situation {
  balance: number | null;
  receipt: string;
  holdsOrder: boolean; // the order is claimed under this token
}

export type Effect =
  | { kind: "move"; wallet: string; amount: number }
  | { kind: "record"; from: string; amount: number; note: string }
  | { kind: "settle"; order: { id: string; token: string }; answer: Answer };

type Of<Kind> = Extract<Effect, { kind: Kind }>;

export const payments: Command<Payment, Situation, Effect> = {
  name: "payments",
  answerTtlMs: 60_000,
  identityOf: (payment) =>
    payment.order ? undefined : {
      key: storedKeyOf(payment),
      request: ["PAY", payment.from, payment.to, payment.amount, payment.note],
    },
  locksOf: ({ from, to }) => [from, to].flatMap((name) => name ? [`wallet ${name}`] : []),
  find,
  decide,
  apply: { move, record, settle },
};

function decide(payment: Payment, { balance, receipt, holdsOrder }: Situation): Decision<Effect> {
  if (payment.order && !holdsOrder) return { answer: notHeld, effects: [] };
  const decision = balance === null || balance < payment.amount
    ? { answer: tooLittle, effects: [] }
    : paid(payment, receipt);
  if (!payment.order) return decision;
  const { order } = payment;
  const settled: Effect = { kind: "settle", order, answer: decision.answer };
  return { ...decision, effects: [...decision.effects, settled] };
}

// The receipt is shown once.
function paid({ from, to, amount, note }: Payment, receipt: string): Decision<Effect> {
  const body = { from, amount };
  return {
    answer: { status: 201, body: JSON.stringify({ ...body, receipt }), outcome: "applied" },
    repeated: { status: 201, body: JSON.stringify(body), outcome: "applied" },
    effects: [
      { kind: "move", wallet: from, amount: -amount },
      ...(to === undefined ? [] : [{ kind: "move", wallet: to, amount } as const]),
      { kind: "record", from, amount, note },
    ],
  };
}

const tooLittle = refusal({ TOO_LITTLE: 409 }, "state_conflict", "TOO_LITTLE", "too little money");
const notHeld = refusal({ NOT_HELD: 409 }, "state_conflict", "NOT_HELD", "decided by another");

// A worker claims standing orders without the locks of this command.
async function find(tx: Transaction, given: Payment[]): Promise<Situation[]> {
  return await query<Situation>(
    tx,
    sql`
    with held as materialized (
      select id
      from standing_orders
      where (id, claim_token) in (
        select * from unnest(
          ${given.map(({ order }) => order?.id ?? null)}::uuid[],
          ${given.map(({ order }) => order?.token ?? null)}::uuid[]))
      order by id
      for update
    )
    select wallet.balance, gen_random_uuid()::text as receipt, held.id is not null as "holdsOrder"
    from unnest(
      ${given.map(({ from }) => from)}::text[],
      ${given.map(({ order }) => order?.id ?? null)}::uuid[]
    ) with ordinality as given (wallet, id, position)
    left join wallets wallet on wallet.name = given.wallet
    left join held on held.id = given.id
    order by given.position`,
  );
}

async function move(tx: Transaction, moves: Of<"move">[]): Promise<void> {
  await query(
    tx,
    sql`
    update wallets set balance = balance + moved.amount
    from (
      select wallet, sum(amount) as amount
      from unnest(
        ${moves.map(({ wallet }) => wallet)}::text[],
        ${moves.map(({ amount }) => amount)}::bigint[]
      ) as move (wallet, amount)
      group by wallet
    ) as moved
    where wallets.name = moved.wallet`,
  );
}

async function record(tx: Transaction, paid: Of<"record">[]): Promise<void> {
  await query(
    tx,
    sql`
    insert into payments (wallet, amount, note)
    select * from unnest(
      ${paid.map(({ from }) => from)}::text[],
      ${paid.map(({ amount }) => amount)}::bigint[],
      ${paid.map(({ note }) => note)}::text[])`,
  );
}

async function settle(tx: Transaction, done: Of<"settle">[]): Promise<void> {
  await query(
    tx,
    sql`
    update standing_orders held set claim_token = null, outcome = settled.outcome
    from unnest(
      ${done.map(({ order }) => order.id)}::uuid[],
      ${done.map(({ answer }) => answer.body)}::text[]
    ) as settled (id, outcome)
    where held.id = settled.id`,
  );
}

/** A database in which each of these wallets has the balance 100. */
export async function openWallets(...names: string[]): Promise<Opened> {
  const place = await openFresh("entitlement");
  await withClient(place.ownerUrl, (owner) =>
    owner.query(`
      create table wallets (name text primary key, balance bigint not null);
      create table payments (wallet text, amount bigint, note text check (note <> ''));
      create table standing_orders (id uuid primary key, claim_token uuid, outcome text);
      grant select, insert, update on wallets, payments, standing_orders to public;
    `));
  await ask(place.ownerUrl, "insert into wallets select unnest($1::text[]), 100", [names]);
  return place;
}

export function payment(fields: Partial<Payment> = {}): Payment {
  return {
    from: "ann",
    amount: 10,
    note: "a book",
    caller: "",
    idempotencyKey: crypto.randomUUID(),
    traceparent: null,
    ...fields,
  };
}
