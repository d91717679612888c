// The check for loss, in two parts: until it asks the stream, and from there.
import { getLogger } from "@logtape/logtape";
import type { JetStreamManager } from "nats";
import type { QueryConfig } from "pg";
import { outbox } from "../../../entitlement/outbox.ts";
import { repairLostEvents } from "../../../shared/outbox/lost_events.ts";
import type { Database } from "../../../shared/postgres/postgres.ts";
import { Interrupted, unlessInterrupted } from "./real_calls.ts";
import type { Answers, Found } from "./state.ts";

export const log = getLogger("model"); // that nobody reads

// The stream answers once. A second look, because another relay was first, is a step of its own.
export async function repairWith(
  database: Database,
  found: Found | undefined,
): Promise<number | undefined> {
  const answers = found ? [streamInfo(found)] : [];
  const info = () => {
    const answer = answers.shift();
    return answer ? Promise.resolve(answer) : Promise.reject(new Interrupted());
  };
  const manager = { streams: { info } } as unknown as JetStreamManager;
  const server = { manager, serverId: serverAs(found?.run ?? 0) };
  return await unlessInterrupted(
    repairLostEvents(database, outbox, server, "stream", log),
  );
}

function streamInfo({ made, last }: Found): unknown {
  return { config: { name: "stream" }, created: createdAs(made), state: { last_seq: last } };
}

// The process knows only what it has read, so that is recorded and given back when it continues.

export function noting(database: Database, answers: Answers): Database {
  const query = async (config: QueryConfig) => {
    const result = await database.query(config);
    answers.push(result.rows);
    return result;
  };
  return { query } as unknown as Database;
}

export function answeredFirst(database: Database, answers: Answers): Database {
  const left = [...answers];
  const query = (config: QueryConfig) => {
    const rows = left.shift();
    return rows ? Promise.resolve({ rows }) : database.query(config);
  };
  return { query } as unknown as Database;
}

export const createdAs = (made: number): string => `made-${made}`;
export const serverAs = (run: number): string => `run-${run}`;
