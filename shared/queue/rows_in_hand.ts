// The rows that a worker has in hand, and until when each is leased to it.

export interface InHand<Row> {
  row: Row;
  leasedUntil: number; // by performance.now(), counted from before the lease was taken
  lost: boolean;
}

export interface LeaseOptions<Row> {
  leaseMs: number;
  // Returns the ids of the rows that are still leased to this worker. It may leave out rows that
  // are being settled at this moment.
  extend(rows: Row[]): Promise<Set<string>>;
}

export class RowsInHand<Row extends { id: string; token: string }> {
  readonly #options: LeaseOptions<Row>;
  readonly #rows = new Map<string, InHand<Row>>();
  readonly #replaced = new Set<string>(); // tokens
  #renewing: Promise<void> | undefined;

  constructor(options: LeaseOptions<Row>) {
    this.#options = options;
  }

  get size(): number {
    return this.#rows.size;
  }

  add(rows: Row[], leasedFrom: number): InHand<Row>[] {
    const leasedUntil = leasedFrom + this.#options.leaseMs;
    const added = rows.map((row) => ({ row, leasedUntil, lost: false }));
    for (const held of added) {
      const before = this.#rows.get(held.row.id);
      if (before) this.#replaced.add(before.row.token);
      this.#rows.set(held.row.id, held);
    }
    return added;
  }

  // Whether all rows that are leased under the token of this row are in hand. A row may come into
  // hand again while its earlier lease lasts, because a commit was answered after its lease had
  // expired and the row had been claimed.
  hasAllOfToken({ token }: Row): boolean {
    return !this.#replaced.has(token);
  }

  // False if the row was dropped, or was lost and then claimed again under another lease.
  has(held: InHand<Row>): boolean {
    return this.#rows.get(held.row.id) === held;
  }

  drop(held: InHand<Row>): void {
    if (this.has(held)) this.#rows.delete(held.row.id);
    if (this.#rows.size === 0) this.#replaced.clear();
  }

  rows(): Row[] {
    return this.#all().map(({ row }) => row);
  }

  dropAll(): Row[] {
    const rows = this.rows();
    this.#rows.clear();
    return rows;
  }

  // A lease can expire in hand if the process was frozen or the table was unavailable for long.
  get anyRanOut(): boolean {
    return this.#all().some((held) => this.ranOut(held));
  }

  ranOut(held: InHand<Row>): boolean {
    return this.owns(held) && performance.now() >= held.leasedUntil;
  }

  isLeased(held: InHand<Row>): boolean {
    return this.owns(held) && performance.now() < held.leasedUntil;
  }

  owns(held: InHand<Row>): boolean {
    return this.has(held) && !held.lost;
  }

  // A call while a renewal is under way gets the result of that one.
  renew(): Promise<void> {
    this.#renewing ??= this.#renewOnce().finally(() => this.#renewing = undefined);
    return this.#renewing;
  }

  async #renewOnce(): Promise<void> {
    const held = this.#all();
    if (held.length === 0) return;
    const leasedUntil = performance.now() + this.#options.leaseMs;
    const owned = await this.#options.extend(held.map(({ row }) => row));
    for (const one of held) {
      one.lost = !owned.has(one.row.id);
      if (!one.lost) one.leasedUntil = leasedUntil;
    }
  }

  #all(): InHand<Row>[] {
    return [...this.#rows.values()];
  }
}
