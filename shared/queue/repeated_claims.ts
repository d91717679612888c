import type { Database } from "../postgres/postgres.ts";
import { type Claim, type ClaimContext, nothingInHand } from "./job.ts";
import { everything, type Scan, type Since } from "./claim_statement.ts";
import { type Leased, leaseRows } from "./claims.ts";
import type { Lease, LeasedRow } from "./leased_row.ts";
import type { TableDescription } from "./leased_table.ts";

export interface ClaimOptions extends Lease {
  batchSize: number;
  pollIntervalMs: number;
}

export type RepeatedClaim<Content> = (
  limit: number,
  context?: ClaimContext,
) => Promise<Claim<LeasedRow<Content>>>;

// The claims of a worker. Each looks at a bounded number of rows, and the next one goes on where it
// ended. Only one claim per poll interval begins at the oldest row: while some transaction stays
// open, the index keeps an entry for each row that was finished since, and a backlog can begin with
// rows that wait for others.
export function claimRepeatedly<Content extends object>(
  database: Database,
  table: TableDescription<Content>,
  options: ClaimOptions,
): RepeatedClaim<Content> {
  const scans = new Scans(options);
  return async (limit, context = nothingInHand) => {
    const scan = scans.begin(context);
    const claim = await leaseRows<Content>(database, table, options, { limit, context, ...scan });
    scans.end(scan, claim, limit);
    return claim;
  };
}

const overtakingMs = 5_000;
const mostBatches = 10;

interface Begun extends Pick<Scan, "since" | "window"> {
  from: number; // by performance.now()
}

class Scans {
  readonly #options: ClaimOptions;
  #since = (): Since => everything;
  #window: number;
  #beganAt = -Infinity; // the last scan that began at the oldest row
  #inVainMs = 0; // how long claims have looked since then at rows that they could not lease
  #lanes: string[] = [];

  constructor(options: ClaimOptions) {
    this.#options = options;
    this.#window = options.batchSize;
  }

  begin({ lanes, fromOldest }: ClaimContext): Begun {
    const from = performance.now();
    // A backlog that has to be looked at in vain takes at most a tenth of the time.
    const pauseMs = Math.max(this.#options.pollIntervalMs, 10 * this.#inVainMs);
    const hasNewRoom = this.#lanes.some((lane) => !lanes.includes(lane));
    this.#lanes = lanes;
    if (fromOldest || hasNewRoom || from >= this.#beganAt + pauseMs) {
      this.#beganAt = from;
      this.#inVainMs = 0;
      this.#since = () => everything;
    }
    return { from, since: this.#since(), window: this.#window };
  }

  end(
    { from, since, window }: Begun,
    { rows, more, seen, reached }: Leased<unknown>,
    limit: number,
  ): void {
    const isWhole = since === everything;
    const ms = performance.now() - from;
    if (isWhole || seen > 0) this.#inVainMs += ms * (1 - rows.length / Math.max(seen, 1));
    if (seen < window || rows.length >= limit) this.#shrink();
    else if (rows.length * 2 < limit) this.#grow(reached === since);
    if (reached !== null) {
      // Commits can overtake each other, so the end of the table is looked at again.
      const next = more ? reached : before(reached);
      this.#since = () => next;
    } else if (isWhole) {
      this.#since = () => ({ msAgo: performance.now() - from + overtakingMs });
    }
  }

  #shrink(): void {
    this.#window = Math.max(this.#options.batchSize, Math.ceil(this.#window / 2));
  }

  // Without a bound only while all rows of the window have the same turn.
  #grow(stands: boolean): void {
    const most = stands ? Infinity : mostBatches * this.#options.batchSize;
    this.#window = Math.max(this.#window, Math.min(2 * this.#window, most));
  }
}

function before(time: string): string {
  return new Date(Date.parse(time) - overtakingMs).toISOString();
}
