import { z } from "@hono/zod-openapi";
import {
  firstPosition,
  positionSchema,
  readCursor,
  writeCursor,
} from "@kenri/shared/http/cursor.ts";
import { lookRoute } from "@kenri/shared/operators/look_route.ts";
import { momentSchema, valid } from "@kenri/shared/operators/operations.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import type { Handler } from "hono";
import { findBounds } from "./bounds.ts";
import { allHeads, isOfHead } from "./heads.ts";
import { markOfRow, markOfUnhashed } from "./hash.ts";
import { pageOfAudit } from "./pages.ts";
import { type Problem, problemSchema } from "./problem.ts";
import { marksSchema } from "./verify.ts";

// Rows of the audit that belong to no chain, because somebody added them. Adding up the marks of
// all rows is quick, so it comes first. The rows themselves are searched for only if the sum
// differs from that of the chains. Rows with an impossible time are few and are always searched
// for.

const countedAtOnce = 20_000;
const searchedAtOnce = 500;

const requestSchema = z.object({
  before: momentSchema().openapi({
    description: "The `before` with which the chains were verified",
  }),
  search: z.enum(["true", "false"]).default("false").openapi({
    description: "Return the rows that belong to no chain",
  }),
  cursor: z.string().optional().openapi({ description: "The `next_cursor` of the previous page" }),
});

export type RowsQuery = z.input<typeof requestSchema>;

const answerSchema = z.object({
  rows: z.int(),
  hashed: z.int(),
  marks: marksSchema,
  unhashed_marks: marksSchema,
  late: z.int().openapi({
    description: "Rows without a hash from a time when every release wrote one",
  }),
  problems: z.array(problemSchema),
  next_cursor: z.string().optional(),
}).openapi("CountedAudit");

export type RowsAnswer = z.infer<typeof answerSchema>;

export const strayRowsRoute = lookRoute({
  path: "/debug/entitlement/audit/rows",
  summary: "Rows of the audit",
  description: "Counts the rows, or returns those that belong to no chain",
  query: requestSchema,
  answer: answerSchema,
  answers: "One page of rows, by time",
  invalid: "A parameter is invalid",
});

export function strayRows(database: Database): Handler {
  return async ({ req }) => {
    const { before, search, cursor } = valid(requestSchema.safeParse(req.query()));
    const { all_hashed_since } = await findBounds(database, before);
    const after = readCursor(cursor, positionSchema) ?? firstPosition;
    const isSearch = search === "true";
    const limit = isSearch ? searchedAtOnce : countedAtOnce;
    const page = [...after, before, limit, all_hashed_since] as const;
    const [counted, problems, impossible] = await Promise.all([
      countRows(database, page),
      isSearch ? findStrays(database, pageOfAudit, page) : [],
      cursor === undefined
        ? findStrays(database, impossibleRows, [...firstPosition, before, limit, all_hashed_since])
        : [],
    ]);
    const { occurred_at, audit_id, ...counts } = counted;
    return Response.json({
      ...counts,
      problems: [...problems, ...impossible],
      next_cursor: counts.rows === limit ? writeCursor([occurred_at, audit_id]) : undefined,
    });
  };
}

type PageOfRows = readonly [...string[], number, string];

interface Counted extends Record<string, unknown> {
  rows: number;
  hashed: number;
  marks: string;
  unhashed_marks: string;
  late: number;
  occurred_at: string;
  audit_id: string;
}

async function countRows(database: Database, values: PageOfRows): Promise<Counted> {
  const [counted] = await query<Counted>(
    database,
    `select count(*) as rows, count(hash) as hashed,
       coalesce(sum(${markOfRow("page")}) filter (where hash is not null), 0)::text as marks,
       coalesce(sum(${markOfUnhashed("page")}) filter (where hash is null), 0)::text
         as unhashed_marks,
       count(*) filter (where hash is null and occurred_at > $5) as late,
       ${utc("max(occurred_at)")} as occurred_at,
       (array_agg(audit_id order by occurred_at desc, audit_id desc))[1] as audit_id
     from (${pageOfAudit}) as page`,
    [...values],
  );
  return counted as Counted;
}

// Rows with a time outside of all pages: before the first page ($1), or in the future.
const impossibleRows = `select *
         from entitlement_audit
         where (occurred_at, audit_id) < ($1, $2)
           or occurred_at > greatest($3::timestamptz, now())
         order by occurred_at, audit_id
         limit $4`;

// Walks back the chain of the entitlement or balance of each row, and returns the rows that it does not reach.
function findStrays(
  database: Database,
  rows: string,
  values: PageOfRows,
): Promise<Problem[]> {
  return query<Problem & Record<string, unknown>>(
    database,
    `with page as materialized (${rows})
     select case when hash is null then 'UNHASHED' else 'STRAY' end as kind, user_id,
       stock_keeping_unit, null as version, ${utc("occurred_at")} as at, audit_id,
       case when hash is null then 'it was written without a hash'
         else 'it belongs to no chain, so somebody added it' end as says
     from page
     where hash is null and (occurred_at > $5 or occurred_at < '0001-01-01')
       or hash is not null and not exists (
         with recursive chain as (
           select entry.audit_id, entry.occurred_at, entry.previous_at, entry.previous_hash
           from (${allHeads}) as head
           join entitlement_audit entry
             on entry.occurred_at = head.hashed_at
             and entry.hash = head.last_hash
           where ${isOfHead("page", "head")}
           union
           select entry.audit_id, entry.occurred_at, entry.previous_at, entry.previous_hash
           from chain
           join entitlement_audit entry
             on entry.occurred_at = chain.previous_at
             and entry.hash = chain.previous_hash
           where chain.previous_at >= page.occurred_at
         )
         select from chain where chain.audit_id = page.audit_id)
     order by occurred_at, audit_id`,
    [...values],
  );
}
