import type { Database } from "../postgres/postgres.ts";

// A worker may commit many rows with the same commands as requests. While requests come, and for a
// moment afterwards, it commits one batch of rows after the other, with a rest after each, so that a
// backlog leaves requests about half of what they have without it.

// When a commit of requests has ended; infinity while one is under way.
const requestsAt = new WeakMap<Database, number>();
const momentMs = 200; // longer than the pauses between the commits of a few clients
const rest = 0.3; // of the time of the commit

export function requestsCome(database: Database): boolean {
  return performance.now() - (requestsAt.get(database) ?? -Infinity) < momentMs;
}

export async function asRequests<Result>(
  database: Database,
  commit: () => Promise<Result>,
): Promise<Result> {
  requestsAt.set(database, Infinity);
  try {
    return await commit();
  } finally {
    requestsAt.set(database, performance.now());
  }
}

export async function behindRequests<Result>(
  database: Database,
  commit: () => Promise<Result>,
): Promise<Result> {
  const from = performance.now();
  const result = await commit();
  const restMs = requestsCome(database) ? rest * (performance.now() - from) : 0;
  if (restMs > 0) await new Promise((over) => setTimeout(over, restMs));
  return result;
}
