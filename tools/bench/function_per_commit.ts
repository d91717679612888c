// Work done by one function inside PostgreSQL, with a commit for each call. It is the best that a careful
// implementation without batches could reach.
import type { DatabaseUrls } from "../load/stage.ts";
import { runStatements } from "../load/statements.ts";

export interface ServerFunction {
  make(database: DatabaseUrls): Promise<unknown>;
  call: string;
  values(number: number): string[]; // of call number `number`
  /** Fails unless exactly so many calls were made. */
  assertDone(database: DatabaseUrls, made: number): Promise<void>;
}

const connections = 32; // the best of 8, 16, 32 and 64

export const sameWork = {
  name: "one function call per commit",
  what: `over ${connections} connections, by a client as light as pgbench, no HTTP`,
};

/** Returns the rate per second. */
export async function callPerCommit(
  { ownerUrl }: DatabaseUrls,
  { call, values }: ServerFunction,
  { first, count }: { first: number; count: number },
): Promise<number> {
  const { seconds } = await runStatements({
    url: ownerUrl,
    statement: call,
    calls: Array.from({ length: count }, (_, i) => values(first + i)),
    connections,
  });
  return count / seconds;
}
