// One worker whose statements and work end in a random order, while another worker takes over rows
// of leases that it believes to have expired.
import assert from "node:assert/strict";
import { setImmediate } from "node:timers";
import fc from "fast-check";
import type { Claimed, Outcome } from "./job.ts";
import { type Run, start, Table } from "./worker_testing.ts";

Deno.test("however claims, settles and lost leases interleave, rows of one key are worked on in order, and none is lost", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat({ max: 999_983 }), { minLength: 100, maxLength: 200 }),
      async (choices) => {
        const stage = new Stage(choices);
        await stage.play();
      },
    ),
    { numRuns: 200, endOnFailure: true },
  );
});

type Gate = () => void;

class Stage {
  readonly #table = new Table([], (id) => id.slice(0, 1));
  readonly #gates: Gate[] = []; // what waits until the test lets it go on
  readonly #underWay = new Set<string | null>();
  readonly #begun = new Set<string>();
  readonly #over = new Set<string>(); // ids of the rows that were worked on successfully
  readonly #choices: number[];
  readonly #run: Run;
  readonly #errors: string[] = [];
  #writing = 0;
  #calm = false; // nothing goes wrong any more

  constructor(choices: number[]) {
    this.#choices = [...choices];
    const table = this.#table;
    this.#run = start(table, (row) => this.#work(row), {
      batchSize: 4,
      leaseMs: 3,
      pollIntervalMs: 2,
      maxAttempts: Infinity,
      backoff: { delaysMs: [1] },
      claim: (limit, context) => this.#statement(() => table.claim(limit, context)),
      settle: (settlements) => this.#statement(() => table.settle(settlements)),
      extend: (rows) => this.#statement(() => table.extend(rows)),
    });
  }

  async play(): Promise<void> {
    while (this.#choices.length > 0) {
      this.#step();
      await turn();
    }
    this.#calm = true;
    const unfinished = () => this.#table.rows.filter(({ finished }) => !finished);
    const late = performance.now() + 5_000;
    while ((this.#writing > 0 || unfinished().length > 0) && performance.now() < late) {
      this.#otherWorker();
      this.#allGoOn();
      await turn();
    }
    // In turns, because a timer may take longer than a lease.
    let isStopped = false;
    const stopped = this.#run.stop().finally(() => isStopped = true);
    while (!isStopped) {
      this.#allGoOn();
      await turn();
    }
    await stopped;
    assert.deepEqual(this.#errors, []);
    assert.deepEqual(unfinished().map(({ id }) => id), []);
  }

  #step(): void {
    const kind = this.#choose(12);
    if (kind === 0) this.#otherWorker();
    else if (kind === 1) this.#takeOver();
    else if (kind <= 3) this.#write();
    else this.#goOn();
  }

  #goOn(): void {
    const [gate] = this.#gates.splice(this.#choose(this.#gates.length), 1);
    gate?.();
  }

  #allGoOn(): void {
    for (const gate of this.#gates.splice(0)) gate();
  }

  #write(): void {
    const ids = Array.from({ length: 1 + this.#choose(3) }, () => this.#newId());
    this.#writing++;
    void this.#run.handover.write(ids.length, async (lease) => {
      await this.#gate();
      if (!lease) { for (const id of ids) this.#table.write(id); }
      const leased = lease ? this.#table.writeLeased(ids, lease.token) : [];
      await this.#gate();
      return { result: undefined, leased, othersWait: leased.length < ids.length };
    }).finally(() => this.#writing--);
  }

  #ids = 0;
  #newId(): string {
    return `${["a", "b"][this.#choose(2)]}${this.#ids++}`;
  }

  /** Another worker takes over the first rows of a key. */
  #takeOver(): void {
    const key = ["a", "b"][this.#choose(2)];
    const rows = this.#table.rows.filter((row) => row.key === key && !row.finished);
    for (const row of rows.slice(0, 1 + this.#choose(3))) {
      if (row.lease) this.#table.steal(row.id);
    }
  }

  /** The first row of a key that the other worker has ends well, or goes back. */
  #otherWorker(): void {
    const rows = this.#table.rows.filter(({ finished }) => !finished);
    const first = ["a", "b"].map((key) => rows.find((row) => row.key === key));
    for (const row of first) {
      if (!row?.lease?.token.startsWith("other")) continue;
      row.lease = undefined;
      row.dueAt = performance.now() + this.#choose(3);
      if (!this.#calm && this.#choose(2) === 0) continue;
      row.finished = "done";
      this.#over.add(row.id);
    }
  }

  async #work(row: Claimed): Promise<Outcome<string>> {
    const { id, key } = row;
    if (this.#underWay.has(key)) this.#errors.push(`${id} is worked on beside another row`);
    const earlier = this.#table.rows.slice(0, this.#table.rows.findIndex((one) => one.id === id))
      .filter((one) => one.key === key && one.finished !== "failed" && !this.#over.has(one.id));
    if (!this.#begun.has(id) && earlier.length > 0) {
      this.#errors.push(`${id} is worked on before ${earlier.map(({ id }) => id)}`);
    }
    this.#begun.add(id);
    this.#underWay.add(key);
    await this.#gate();
    this.#underWay.delete(key);
    const outcome = this.#outcome();
    if (outcome.kind === "done") this.#over.add(id);
    return outcome;
  }

  #outcome(): Outcome<string> {
    const error = "x";
    switch (this.#calm ? 0 : this.#choose(8)) {
      case 1:
        return { kind: "retry", error, delayMs: this.#choose(3) };
      case 2:
        return { kind: "later", delayMs: this.#choose(3) };
      case 3:
        return { kind: "failed", error };
      case 4:
        return { kind: "unavailable", error };
      default:
        return { kind: "done", result: "" };
    }
  }

  /** A statement takes effect some time after it was sent, and is answered some time after that. */
  async #statement<Returned>(statement: () => Promise<Returned>): Promise<Returned> {
    await this.#gate();
    if (!this.#calm && this.#choose(10) === 0) throw new Error("Connection terminated");
    const returned = await statement();
    await this.#gate();
    if (!this.#calm && this.#choose(10) === 0) throw new Error("Connection terminated");
    return returned;
  }

  #gate(): Promise<void> {
    return new Promise((goOn) => this.#gates.push(goOn));
  }

  #choose(count: number): number {
    return count === 0 ? 0 : (this.#choices.shift() ?? 0) % count;
  }
}

function turn(): Promise<void> {
  return new Promise((next) => setImmediate(next));
}
