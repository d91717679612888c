import {
  type Database,
  isUnavailable,
  lastTogether,
  together,
  type Transaction,
  transaction,
} from "../postgres/postgres.ts";
import { Batch } from "../queue/batch.ts";
import { observeBatch } from "../queue/batch_metrics.ts";
import { Handover, type NewLease, type Written } from "../queue/handover.ts";
import { stepTogether } from "../telemetry/tracing.ts";
import { type Answer, type Decision, keyConflict } from "./answer.ts";
import { lockNames } from "./locks.ts";
import { asRequests, behindRequests, requestsCome } from "./precedence.ts";
import {
  type AnswerToStore,
  findAnswers,
  type Identity,
  replayOf,
  storeAnswers,
} from "./stored_answers.ts";

// A command changes something once, however often its request is sent. A service says what its
// command locks, finds, decides and writes; the rest is here. Inputs that arrive at the same time
// share one transaction, but each is carried out as if it were alone: its effects and its answer are
// committed together or not at all.

export interface Command<Input, Situation, Effect extends { kind: string }, Row = never> {
  name: string; // the name of its batch in the metrics
  answerTtlMs: number; // how long a repeated request gets the first answer
  // What the answer is stored under. Undefined if rows of the service decide that the input is
  // carried out once; then no answer is looked up or stored here.
  identityOf(input: Input): Identity | undefined;
  // Names of what the input changes. Inputs with a common name, of whatever command and in whatever
  // replica, are carried out one after the other.
  locksOf(input: Input): string[];
  // All that the decisions need besides the inputs: rows, the time, new ids. Returns one situation
  // for each input, in their order. The locks have been granted when its statements run. Rows that
  // are also changed without these locks, such as those of a queue, must be locked here, in the
  // order of their ids.
  find(tx: Transaction, inputs: Input[]): Promise<Situation[]>;
  // Depends on nothing but its parameters. Effects are data; a refusal is an answer without effects.
  decide(input: Input, situation: Situation): Decision<Effect>;
  // For what many inputs change at once, such as one balance. Without it, inputs with a common lock
  // are never committed together.
  fold?: Fold<Input, Situation, Effect>;
  // One statement for each kind of effect, for the effects of all inputs. The statements run in the
  // order in which they are listed here. The commit is sent along with them, so one that can't write
  // all of its effects must fail by itself: nothing can be checked here any more.
  apply: { [Kind in Effect["kind"]]: Apply<Extract<Effect, { kind: Kind }>, Row> };
}

// Inputs with the same subject may share a commit. Each is decided in the situation that the effects
// of the ones before it will leave.
export interface Fold<Input, Situation, Effect> {
  subjectOf(input: Input): string; // one of its locks
  after(earlier: Effect[], found: Situation): Situation; // `earlier` are those of its subject
}

interface Traced {
  traceparent: string | null;
}

// A statement may write rows that wait for a worker, at most one for each input. With a lease, it
// writes as many of them as possible as leased to the worker of this process, and returns those.
export type Apply<Effect, Row> = (
  tx: Transaction,
  effects: Effect[],
  lease: NewLease | undefined,
) => Promise<Row[] | void>;

// Each input takes at least two advisory locks, and PostgreSQL's default lock table has room for
// about 6,400: enough for ten replicas with two such commits at a time.
const inputsPerCommit = 128;
const commitsAtOnce = 2;
// A fraction of a second of work, and about 30 MiB. Beyond that callers should try again later.
const maxWaiting = 1_000;

// What a batch may hold. A worker that adds its rows limits by itself how many it has in hand.
export interface Limits {
  inputsPerCommit: number;
  maxWaiting: number;
  behindRequests?: boolean; // see precedence.ts
}

// Gathers inputs while a commit is running. If a commit fails because of one input, each of its
// inputs is tried alone.
export function commandBatch<
  Input extends Traced,
  Situation,
  Effect extends { kind: string },
  Row = never,
>(
  database: Database,
  command: Command<Input, Situation, Effect, Row>,
  toWorker: Handover<Row> = new Handover(),
  limits: Limits = { inputsPerCommit, maxWaiting },
): Batch<Input, Answer> {
  // Clients repeat their requests in waves, after they could not reach the service or gave up
  // waiting. Only during such a wave is it worth looking for stored answers before taking locks.
  let expectsRepeats = false;
  const carryOut = async (inputs: Input[]) => {
    const replays = expectsRepeats
      ? await findReplays(database, inputs.map((input) => command.identityOf(input)))
      : [];
    const fresh = inputs.filter((_, i) => !replays[i]);
    const committed = fresh.length === 0 ? [] : await toWorker.write(
      fresh.length,
      (lease) => commit(database, command, fresh, lease),
    );
    const next = committed.values();
    const answers = inputs.map((_, i) => replays[i] ?? next.next().value as Answer);
    expectsRepeats = answers.some(({ outcome }) => outcome === "replayed");
    return answers;
  };
  const isBehind = limits.behindRequests === true;
  const inTurn = isBehind ? behindRequests : asRequests;
  const batch = new Batch({
    flush: (inputs: Input[]) => inTurn(database, () => stepTogether("commit", inputs, carryOut)),
    // The word distinguishes a key from the name of a lock, because a client may choose any key.
    keysOf: (input) => {
      const identity = command.identityOf(input);
      const subject = command.fold?.subjectOf(input);
      const alone = command.locksOf(input).filter((lock) => lock !== subject);
      return [...(identity ? [`key ${identity.key}`] : []), ...alone];
    },
    mayBeOneItem: (error) => !isUnavailable(error),
    maxItems: limits.inputsPerCommit,
    besideMany: limits.inputsPerCommit / 2,
    maxFlushes: () => isBehind && requestsCome(database) ? 1 : commitsAtOnce,
    maxWaiting: limits.maxWaiting,
  });
  observeBatch(command.name, batch);
  return batch;
}

// The conflict of a key with another request is decided only under the lock of the key.
async function findReplays(
  database: Database,
  identities: (Identity | undefined)[],
): Promise<(Answer | undefined)[]> {
  const stored = await findAnswers(database, keysOf(identities));
  return identities.map((identity) => {
    const found = identity && stored.get(identity.key);
    return found && replayOf(found, identity);
  });
}

function keysOf(identities: (Identity | undefined)[]): string[] {
  return identities.flatMap((identity) => identity ? [identity.key] : []);
}

// Carries out inputs in one transaction. No two of them have a key or the name of a lock in common,
// except that of a subject, because the batch keeps those apart. With a lease, rows for a worker are written as leased to the
// worker of this process.
export function commit<Input, Situation, Effect extends { kind: string }, Row>(
  database: Database,
  command: Command<Input, Situation, Effect, Row>,
  inputs: Input[],
  lease?: NewLease,
): Promise<Written<Row, Answer[]>> {
  const identities = inputs.map((input) => command.identityOf(input));
  const keys = keysOf(identities);
  return transaction(database, async (tx) => {
    const [_, stored, situations] = await together([
      lockNames(tx, [...keys, ...inputs.flatMap((input) => command.locksOf(input))]),
      findAnswers(tx, keys),
      command.find(tx, inputs),
    ]);
    if (situations.length !== inputs.length) throw new Error("An input has no situation");
    const decide = inOrder(command);
    const decisions = inputs.map((input, i): Decision<Effect> => {
      const identity = identities[i];
      const found = identity && stored.get(identity.key);
      if (found) return { answer: replayOf(found, identity) ?? keyConflict, effects: [] };
      return decide(input, situations[i] as Situation);
    });
    const [written] = await lastTogether(tx, [
      applyEffects(tx, command, decisions.flatMap(({ effects }) => effects), lease),
      storeAnswers(tx, newAnswers(decisions, identities), command.answerTtlMs),
    ]);
    return { ...written, result: decisions.map(({ answer }) => answer) };
  });
}

// Decides inputs one after the other, each after what the earlier ones with its subject have done.
function inOrder<Input, Situation, Effect extends { kind: string }, Row>(
  { decide, fold }: Command<Input, Situation, Effect, Row>,
): (input: Input, situation: Situation) => Decision<Effect> {
  if (!fold) return decide;
  const effectsOf = new Map<string, Effect[]>();
  return (input, found) => {
    const subject = fold.subjectOf(input);
    const earlier = effectsOf.get(subject) ?? [];
    effectsOf.set(subject, earlier);
    const decision = decide(input, fold.after(earlier, found));
    earlier.push(...decision.effects);
    return decision;
  };
}

function newAnswers<Effect>(
  decisions: Decision<Effect>[],
  identities: (Identity | undefined)[],
): AnswerToStore[] {
  return decisions.flatMap(({ answer, repeated = answer }, i) => {
    const identity = identities[i];
    const isKnown = answer.outcome === "replayed" || answer.outcome === "key_conflict";
    return identity && !isKnown ? [{ identity, answer: repeated }] : [];
  });
}

// The statements are sent together, so they take one round trip, with the commit.
async function applyEffects<Input, Situation, Effect extends { kind: string }, Row>(
  tx: Transaction,
  command: Command<Input, Situation, Effect, Row>,
  effects: Effect[],
  lease: NewLease | undefined,
): Promise<Omit<Written<Row, unknown>, "result">> {
  const statements = Object.entries(command.apply) as [string, Apply<Effect, Row>][];
  const written = await together(statements.map(async ([kind, apply]) => {
    const own = effects.filter((effect) => effect.kind === kind);
    const leased = own.length === 0 ? undefined : await apply(tx, own, lease);
    return { leased: leased ?? [], othersWait: !!leased && leased.length < own.length };
  }));
  return {
    leased: written.flatMap(({ leased }) => leased),
    othersWait: written.some(({ othersWait }) => othersWait),
  };
}
