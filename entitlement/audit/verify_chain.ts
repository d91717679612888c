import { type Action, type Status, statusAfter } from "../entitlement.ts";

// Whether the audit of one entitlement is what was written: from its last row back to the first that
// is left, each sealed by its own hash, which the row after it has as well.

export interface Head {
  user_id: string;
  stock_keeping_unit: string;
  status: Status;
  source: string;
  source_id: string;
  version: number;
  updated_at: string;
  last_hash: string | null;
  hashed_at: string | null;
  is_audited: boolean; // there is an audit row of its last change
}

export interface Entry {
  audit_id: string;
  occurred_at: string;
  user_id: string;
  stock_keeping_unit: string;
  action: Action;
  source: string;
  source_id: string;
  version: number | null;
  hash: string | null;
  previous_hash: string | null;
  previous_at: string | null;
  mark: string | null;
  is_possible: boolean; // the time at which it is said to have occurred
  is_intact: boolean | null; // its hash is that of its content, and it is of this entitlement
  is_erased: boolean;
  is_recorded: boolean; // its erasure is
}

// Versions that have no row with a hash. They must have one without, unless they may be so old that it
// was dropped.
export interface Gap {
  user_id: string;
  stock_keeping_unit: string;
  first: number;
  last: number;
  may_be_dropped: boolean;
}

// Where the next row back should be, and its hash.
export interface Link {
  at: string;
  hash: string;
}

export interface Bounds {
  before: string; // later rows are judged, but not counted: changes go on
  dropped_until: string; // what was earlier may have been dropped for its age
  all_hashed_since: string; // no release that knows no hashes serves any more
}

export type Kind =
  | "CHANGED"
  | "REPLACED"
  | "MISSING"
  | "LINK"
  | "VERSION"
  | "TIME"
  | "HASH_REMOVED"
  | "UNHASHED"
  | "ERASED_UNRECORDED"
  | "ENTITLEMENT"
  | "STRAY";

export interface Problem {
  kind: Kind;
  user_id: string;
  stock_keeping_unit: string;
  version: number | null;
  at: string | null;
  audit_id: string | null;
  says: string;
}

export class ChainVerifier {
  readonly problems: Problem[] = [];
  next: Link | undefined; // undefined where the chain begins
  last: string | undefined; // the hash at which the chain ended then
  reached = 0; // rows with a hash
  marks = 0n; // the sum of theirs
  readonly gaps: Gap[] = []; // from before the chain, or by a release that knew none
  erased = 0;
  readonly #head: Head;
  readonly #bounds: Bounds;
  #above: number; // the version that the row before must be right below

  constructor(head: Head, bounds: Bounds) {
    this.#head = head;
    this.#bounds = bounds;
    const { hashed_at, last_hash, version } = head;
    this.#above = version + 1;
    if (hashed_at !== null && last_hash !== null) this.#follow({ at: hashed_at, hash: last_hash });
    if (!this.#isSealed) this.#judgeUnsealed();
  }

  // What was found where `next` leads: one row, unless somebody meddled with it.
  verify(found: Entry[]): void {
    const link = this.next as Link;
    const entry = found.find(({ hash }) => hash === link.hash) ?? found[0];
    this.next = undefined;
    if (!entry) return this.#judgeMissing(link);
    this.#count(entry);
    this.#judgeHash(entry, link);
    this.#judgeVersion(entry);
    this.#judgeLink(entry);
  }

  get unhashed(): number {
    return this.gaps.reduce((sum, { first, last }) => sum + last - first + 1, 0);
  }

  #count(entry: Entry): void {
    if (!entry.is_possible) this.#report("TIME", "it can't have been written at that time", entry);
    if (entry.hash === null || entry.occurred_at >= this.#bounds.before) return;
    this.reached++;
    this.marks += BigInt(entry.mark ?? 0);
  }

  #judgeLink(entry: Entry): void {
    const { occurred_at, previous_at, previous_hash } = entry;
    if (previous_at === null && previous_hash === null) return this.#leaveOut(1, this.#above - 1);
    // What leads forward was made to, and would lead round in a ring.
    if (previous_at !== null && previous_hash !== null && previous_at < occurred_at) {
      return this.#follow({ at: previous_at, hash: previous_hash });
    }
    this.#report("LINK", "the row before it is said to be a later one", entry);
  }

  #leaveOut(first: number, last: number): void {
    if (last < first) return;
    const { user_id, stock_keeping_unit } = this.#head;
    const may_be_dropped = first === 1 && this.#bounds.dropped_until !== "";
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
  #judgeUnsealed(): void {
    const { hashed_at, updated_at, version, is_audited } = this.#head;
    if (hashed_at === null) this.#leaveOut(1, version);
    if (updated_at > this.#bounds.all_hashed_since) {
      this.#report("UNHASHED", `version ${version} was written without a hash`);
    }
    if (!is_audited && updated_at >= this.#bounds.dropped_until) {
      this.#report("MISSING", `version ${version} has no row`);
    }
  }

  #judgeMissing({ at }: Link): void {
    if (at < this.#bounds.dropped_until) return;
    this.#report("MISSING", `the row of ${at}, before version ${this.#above}, is gone`);
  }

  #judgeHash(entry: Entry, link: Link): void {
    if (entry.hash === null) this.#report("HASH_REMOVED", "its hash was removed", entry);
    else if (!entry.is_intact) this.#report("CHANGED", "it is not what was written", entry);
    else if (entry.hash !== link.hash) {
      this.#report("REPLACED", "it is not the row that was followed", entry);
    }
    if (!entry.is_erased) return;
    this.erased++;
    if (!entry.is_recorded) {
      this.#report("ERASED_UNRECORDED", "it was erased, and no operation says so", entry);
    }
  }

  #judgeVersion(entry: Entry): void {
    const isLast = this.#isSealed && this.#above === this.#head.version + 1;
    if (isLast) this.#judgeState(entry);
    if (entry.version === null) {
      this.#above--;
      return this.#report("VERSION", "it has no version", entry);
    }
    const between = this.#above - entry.version - 1;
    this.#above = entry.version;
    if (between === 0 || isLast) return;
    if (between < 0) return this.#report("VERSION", "a later row has no higher version", entry);
    this.#leaveOut(entry.version + 1, entry.version + between);
    if (entry.occurred_at > this.#bounds.all_hashed_since) {
      this.#report("UNHASHED", `the versions after it, ${between} in number, have no hash`, entry);
    }
  }

  // What a service could change without writing a row.
  #judgeState(entry: Entry): void {
    const { status, source, source_id, version } = this.#head;
    const isSame = statusAfter[entry.action] === status && entry.version === version &&
      entry.source === source && entry.source_id === source_id;
    if (!isSame) {
      this.#report("ENTITLEMENT", "the entitlement is not as its last change left it", entry);
    }
  }

  #report(kind: Kind, says: string, entry?: Entry): void {
    const { user_id, stock_keeping_unit, version } = this.#head;
    this.problems.push({
      kind,
      user_id,
      stock_keeping_unit,
      version: entry ? entry.version : version,
      at: entry?.occurred_at ?? null,
      audit_id: entry?.audit_id ?? null,
      says,
    });
  }
}
