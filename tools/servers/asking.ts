// Runs a few statements on any database, with a connection of their own.
import pg from "pg";

/** Opens a connection for a few statements, and closes it after them. */
export async function withClient<Result>(
  url: string,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end();
  }
}

export function ask<Row>(url: string, sql: string, values: unknown[] = []): Promise<Row[]> {
  return withClient(url, async (client) => (await client.query(sql, values)).rows);
}

/** Counts the rows of a `from` clause, which may contain joins and conditions. */
export async function countRows(
  url: string,
  from: string,
  values: unknown[] = [],
): Promise<number> {
  const [row] = await ask<{ count: number }>(url, `select count(*)::int from ${from}`, values);
  return row?.count ?? 0;
}
