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
