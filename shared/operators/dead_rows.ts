import { z } from "@hono/zod-openapi";
import { firstId } from "../http/cursor.ts";
import type { ErrorCount } from "./dead_letters.ts";
import { listOf } from "../postgres/sql.ts";
import { type Database, query, utc } from "../postgres/postgres.ts";

// Where a layer keeps its dead letters, and the queries that all layers have in common.

export interface DeadTable {
  layer: string;
  name: string;
  id: string; // ascending in time: the oldest row has the lowest
  idType: "uuid" | "bigint";
  isDead: string; // the condition of the index on dead letters
  error: string;
  since: string;
  columns: string; // besides id, error, since and age_seconds
}

const idTypes = {
  uuid: {
    beforeAll: firstId,
    schema: z.uuid().transform((id) => id.toLowerCase()),
  },
  bigint: { beforeAll: "0", schema: z.string().regex(/^[1-9]\d{0,17}$/) },
};

export interface DeadRows<Row> {
  idSchema: z.ZodType<string>;
  // The oldest after the given id; with an error only those with exactly this error.
  find(wanted: { after: string | undefined; error: string | undefined; limit: number }): Promise<
    Row[]
  >;
  // Those of the ids that are dead letters.
  findByIds(ids: string[]): Promise<Row[]>;
  countByError(limit: number): Promise<ErrorCount[]>;
}

export function deadRows<Row extends object>(
  database: Database,
  { name, id, idType, isDead, error: errorOf, since, columns }: DeadTable,
): DeadRows<Row> {
  const selected = `${id}::text as id, ${columns}, ${errorOf} as error, ${utc(since)} as since,
       extract(epoch from now() - ${since})::float8 as age_seconds`;
  const { beforeAll, schema: idSchema } = idTypes[idType];
  return {
    idSchema,
    find: ({ after, error, limit }) =>
      query<Row & Record<string, unknown>>(
        database,
        `select ${selected}
         from ${name}
         where ${isDead}
           and ${id} > $1
           ${error === undefined ? "" : `and ${errorOf} = $3`}
         order by ${id}
         limit $2`,
        [after ?? beforeAll, limit, ...(error === undefined ? [] : [error])],
      ),
    findByIds: (ids) =>
      query<Row & Record<string, unknown>>(
        database,
        `select ${selected}
         from ${name}
         where ${isDead}
           and ${id} = any($1::${idType}[])
         order by ${id}`,
        [listOf(ids)],
      ),
    countByError: (limit) =>
      query<ErrorCount>(
        database,
        `select error, count(*) as count, ${utc("min(since)")} as oldest
         from (
           select ${errorOf} as error, ${since} as since
           from ${name}
           where ${isDead}
           order by ${id}
           limit $1
         ) as dead
         group by error
         order by count desc, error`,
        [limit],
      ),
  };
}

/** How many dead letters there are, counted up to the given number. */
export async function countDead(
  database: Database,
  { name, id, isDead }: DeadTable,
  countUpTo: number,
): Promise<number> {
  const [found] = await query<{ count: number }>(
    database,
    `select count(*) as count
     from (select from ${name} where ${isDead} order by ${id} limit $1) as dead`,
    [countUpTo],
  );
  return found?.count ?? 0;
}
