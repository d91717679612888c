// One prepared statement, called over many connections: what pgbench does with `-M prepared`, on
// machines without it, and with values that come from here.
import { fileURLToPath } from "node:url";
import { closedLoop, type LoadResult } from "./closed_loop.ts";
import { answerCaller, inOwnProcess } from "./own_process.ts";
import { callOf, connectToPostgres, isRow } from "./postgres_connection.ts";

interface Statements {
  url: string;
  statement: string; // it returns a row
  calls: string[][]; // their values
  connections: number;
}

/** Fails unless every call returns a row. */
export function runStatements(statements: Statements): Promise<LoadResult> {
  const { host } = new URL(statements.url);
  return inOwnProcess(fileURLToPath(import.meta.url), host, statements);
}

async function callAll({ url, statement, calls, connections }: Statements): Promise<LoadResult> {
  const requests = calls.map(callOf);
  const open = await Promise.all(
    Array.from({ length: connections }, () => connectToPostgres(url, statement)),
  );
  return await closedLoop(open, requests, isRow);
}

if (import.meta.main) await answerCaller(callAll);
