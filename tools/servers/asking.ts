// A few statements to any database, on a connection of their own.
import pg from "pg";

/** One connection for a few statements, closed when they are done. */
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
