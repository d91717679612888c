import { type Action, statusAfter } from "../entitlement.ts";
import type { Bounds } from "./bounds.ts";
import type { Entry, Head, Link } from "./chains.ts";
import type { Kind, Problem } from "./problem.ts";

// Versions that have no row with a hash. They must have a row without one, unless it may have been
// dropped for its age.
export interface Gap {
  user_id: string;
  stock_keeping_unit: string;
  first: number;
  last: number;
  may_be_dropped: boolean;
}

// Verifies the audit of one entitlement or balance, from its last row back to the first that retention has
// left. Each row has a hash over its content and over the hash of the row before it, and the row
// after it repeats that hash.
export class ChainVerifier {
  readonly problems: Problem[] = [];
  next: Link | undefined; // undefined where the chain begins
  last: string | undefined; // the last hash of the chain before `bounds.before`
  reached = 0; // rows with a hash
  marks = 0n; // the sum of the marks of these rows
  readonly gaps: Gap[] = []; // from before the chain, or written by a release without hashes
  erased = 0;
  readonly #head: Head;
  readonly #bounds: Bounds;
  #above: number; // the previous row must have the version right below this one
  #balance: number | null; // what it must have left, in a chain of points

  constructor(head: Head, bounds: Bounds) {
    this.#head = head;
    this.#bounds = bounds;
    const { hashed_at, last_hash, version, balance } = head;
    this.#above = version + 1;
    this.#balance = balance;
    if (hashed_at !== null && last_hash !== null) this.#follow({ at: hashed_at, hash: last_hash });
    if (!this.#isSealed) this.#verifyUnsealed();
  }

  // Takes the rows that were found where `next` points: one row, unless somebody tampered with it.
  verify(found: Entry[]): void {
    const link = this.next as Link;
    const entry = found.find(({ hash }) => hash === link.hash) ?? found[0];
    this.next = undefined;
    if (!entry) return this.#verifyMissing(link);
    this.#count(entry);
    this.#verifyHash(entry, link);
    this.#verifyVersion(entry);
    if (this.#head.kind === "POINTS") this.#verifyBalance(entry);
    this.#verifyLink(entry);
  }

  get unhashed(): number {
    return this.gaps.reduce((sum, { first, last }) => sum + last - first + 1, 0);
  }

  #count(entry: Entry): void {
    if (!entry.is_possible) this.#report("TIME", "its time is impossible", entry);
    if (entry.hash === null || entry.occurred_at >= this.#bounds.before) return;
    this.reached++;
    this.marks += BigInt(entry.mark ?? 0);
  }

  #verifyLink(entry: Entry): void {
    const { occurred_at, previous_at, previous_hash } = entry;
    if (previous_at === null && previous_hash === null) return this.#addGap(1, this.#above - 1);
    // A link to a later row was forged, and following it could go round in circles.
    if (previous_at !== null && previous_hash !== null && previous_at < occurred_at) {
      return this.#follow({ at: previous_at, hash: previous_hash });
    }
    this.#report("LINK", "its link leads to a later row", entry);
  }

  #addGap(first: number, last: number): void {
    if (last < first) return;
    const { kind, user_id, stock_keeping_unit } = this.#head;
    const may_be_dropped = first === 1 && this.#bounds.dropped_until !== "";
    if (kind === "POINTS") { // every release that writes points has hashed their rows
      if (!may_be_dropped) this.#report("VERSION", `the versions ${first} to ${last} have no row`);
      return;
    }
    this.gaps.push({ user_id, stock_keeping_unit, first, last, may_be_dropped });
  }

  #follow(link: Link): void {
    this.next = link;
    if (link.at < this.#bounds.before) this.last ??= link.hash;
  }

  get #isSealed(): boolean {
    const { hashed_at, last_hash, updated_at } = this.#head;
    return hashed_at === updated_at && last_hash !== null;
  }

  // The last change was written without a hash.
  #verifyUnsealed(): void {
    const { hashed_at, updated_at, version, is_audited } = this.#head;
    if (hashed_at === null) this.#addGap(1, version);
    if (updated_at > this.#bounds.all_hashed_since) {
      this.#report("UNHASHED", `version ${version} was written without a hash`);
    }
    if (!is_audited && updated_at >= this.#bounds.dropped_until) {
      this.#report("MISSING", `version ${version} has no row`);
    }
  }

  #verifyMissing({ at }: Link): void {
    if (at < this.#bounds.dropped_until) return;
    this.#report("MISSING", `the row of ${at}, before version ${this.#above}, is missing`);
  }

  #verifyHash(entry: Entry, link: Link): void {
    if (entry.hash === null) this.#report("HASH_REMOVED", "its hash was removed", entry);
    else if (!entry.is_intact) {
      this.#report("CHANGED", "its content was changed", entry);
    } else if (entry.hash !== link.hash) {
      this.#report("REPLACED", "its hash is not the one that the next row contains", entry);
    }
    if (!entry.is_erased) return;
    this.erased++;
    if (!entry.is_recorded) {
      this.#report(
        "ERASED_UNRECORDED",
        "it was erased, but no recorded operation did that",
        entry,
      );
    }
  }

  #verifyVersion(entry: Entry): void {
    const isLast = this.#isSealed && this.#above === this.#head.version + 1;
    if (isLast) this.#verifyState(entry);
    if (entry.version === null) {
      this.#above--;
      return this.#report("VERSION", "it has no version", entry);
    }
    const between = this.#above - entry.version - 1;
    this.#above = entry.version;
    if (between === 0 || isLast) return;
    if (between < 0) {
      return this.#report("VERSION", "its version is not below that of the next row", entry);
    }
    this.#addGap(entry.version + 1, entry.version + between);
    if (entry.occurred_at > this.#bounds.all_hashed_since) {
      this.#report("UNHASHED", `the ${between} versions after it have no hash`, entry);
    }
  }

  // The entitlement or balance itself, which could be changed without writing a row.
  #verifyState(entry: Entry): void {
    const { kind, status, source, source_id, version } = this.#head;
    if (kind === "POINTS") {
      if (entry.version === version) return;
      return this.#report("BALANCE", "the balance has another version than its last row", entry);
    }
    const isSame = statusAfter[entry.action as Action] === status && entry.version === version &&
      entry.source === source && entry.source_id === source_id;
    if (!isSame) {
      this.#report("ENTITLEMENT", "the entitlement does not match its last change", entry);
    }
  }

  // Each balance is the one before it and what was added or taken, and the last one is the balance
  // itself.
  #verifyBalance(entry: Entry): void {
    const { action, balance, point_amount, previous_at } = entry;
    if (balance === null || point_amount === null) {
      return this.#report("BALANCE", "it has no balance or no amount", entry);
    }
    if (balance !== this.#balance) {
      this.#report("BALANCE", `the balance after it should be ${this.#balance}`, entry);
    }
    if (action !== (point_amount > 0 ? "POINTS_ADD" : "POINTS_TAKE")) {
      this.#report("BALANCE", "its action does not match its amount", entry);
    }
    this.#balance = balance - point_amount;
    if (previous_at === null && this.#balance !== 0) {
      this.#report("BALANCE", `a balance can't begin with ${this.#balance}`, entry);
    }
  }

  #report(kind: Kind, message: string, entry?: Entry): void {
    const { user_id, stock_keeping_unit, version } = this.#head;
    this.problems.push({
      kind,
      user_id,
      stock_keeping_unit,
      version: entry ? entry.version : version,
      at: entry?.occurred_at ?? null,
      audit_id: entry?.audit_id ?? null,
      says: message,
    });
  }
}
