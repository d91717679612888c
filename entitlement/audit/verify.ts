import { z } from "@hono/zod-openapi";
import { readCursor, writeCursor } from "@kenri/shared/http/cursor.ts";
import { lookRoute } from "@kenri/shared/operators/look_route.ts";
import { fieldSchema } from "@kenri/shared/http/fields.ts";
import { headsOf } from "@kenri/shared/operators/hash_sums.ts";
import { momentSchema, valid } from "@kenri/shared/operators/operations.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Handler } from "hono";
import { type Bounds, findBounds } from "./bounds.ts";
import { type Chain, findChains, findMore } from "./chains.ts";
import type { HeadKind } from "./heads.ts";
import { findMissingVersions, marksOf } from "./missing_versions.ts";
import { type Problem, problemSchema } from "./problem.ts";
import { ChainVerifier } from "./verify_chain.ts";

// Verifies the chains of the audit, a page of them for each call: first those of entitlements, then
// those of balances. The caller adds up the figures of all pages; docs/audit.md describes the
// result.

const chainsAtOnce = 100;
const rowsAtOnce = 200; // of one chain

const requestSchema = z.object({
  user_id: fieldSchema().optional(),
  before: momentSchema().optional().openapi({ description: "The `before` of the first page" }),
  heads: z.enum(["true", "false"]).default("false").openapi({
    description: "Also return the sum over the last hashes, for an anchor",
  }),
  search: z.enum(["true", "false"]).default("false").openapi({
    description:
      "Also check that versions without a hash have a row; this is always done for one user",
  }),
  cursor: z.string().optional().openapi({ description: "The `next_cursor` of the previous page" }),
});

export type ChainsQuery = z.input<typeof requestSchema>;

export const marksSchema = z.string().openapi({
  description: "A sum over the rows that were counted; two equal sets have equal sums",
});

const answerSchema = z.object({
  before: z.string(),
  entitlements: z.int(),
  balances: z.int().openapi({ description: "Balances of points" }),
  reached: z.int().openapi({ description: "Rows with a hash that belong to a chain" }),
  unhashed: z.int().openapi({
    description: "Versions without a hash, written by earlier releases",
  }),
  erased: z.int(),
  marks: marksSchema,
  unhashed_marks: marksSchema.optional(),
  problems: z.array(problemSchema),
  heads: z.object({ count: z.int(), sum: z.string() }).optional(),
  next_cursor: z.string().optional(),
}).openapi("VerifiedAudit");

export type ChainsAnswer = z.infer<typeof answerSchema>;

export const verifyAuditRoute = lookRoute({
  path: "/debug/entitlement/audit/chains",
  summary: "Chains of the audit",
  description:
    "Verifies that each row of the audit is what was written and that none in between is missing",
  query: requestSchema,
  answer: answerSchema,
  answers: "One page of entitlements or balances, verified with all their rows",
  invalid: "A parameter is invalid",
});

export function verifyAudit(database: Database): Handler {
  return async ({ req }) => {
    const asked = valid(requestSchema.safeParse(req.query()));
    const bounds = await findBounds(database, asked.before);
    const [kind, user_id, item] = readCursor(asked.cursor, placeSchema) ??
      ["RIGHT", asked.user_id ?? "", ""] as const;
    const chains = await findChains(database, { kind, user_id, item }, {
      ofOneUser: asked.user_id !== undefined,
      limit: chainsAtOnce,
      depth: rowsAtOnce,
    });
    const verifiers: ChainVerifier[] = [];
    for (const chain of chains) verifiers.push(await verifyChain(database, chain, bounds));
    const gaps = verifiers.flatMap((verifier) => verifier.gaps);
    // Rows without a hash may have been in the months that were dropped.
    const isWhole = bounds.dropped_until === "";
    const isSearch = asked.search === "true" || asked.user_id !== undefined || !isWhole;
    const missing = isSearch
      ? await findMissingVersions(
        database,
        gaps.filter((gap) => !gap.may_be_dropped),
        bounds.all_hashed_since,
      )
      : [];
    const sum = (figure: "reached" | "unhashed" | "erased") =>
      verifiers.reduce((total, verifier) => total + verifier[figure], 0);
    return Response.json({
      before: bounds.before,
      entitlements: kind === "RIGHT" ? chains.length : 0,
      balances: kind === "POINTS" ? chains.length : 0,
      reached: sum("reached"),
      unhashed: sum("unhashed"),
      erased: sum("erased"),
      marks: `${verifiers.reduce((total, { marks }) => total + marks, 0n)}`,
      unhashed_marks: isWhole ? `${marksOf(gaps)}` : undefined,
      problems: [...verifiers.flatMap(({ problems }): Problem[] => problems), ...missing],
      heads: asked.heads === "true"
        ? headsOf(verifiers.map((verifier) => verifier.last))
        : undefined,
      next_cursor: cursorAfter(kind, chains, asked.user_id),
    });
  };
}

const placeSchema = z.tuple([z.enum(["RIGHT", "POINTS"]), z.string(), z.string()]);

function cursorAfter(kind: HeadKind, chains: Chain[], user = ""): string | undefined {
  const last = chains.length === chainsAtOnce ? chains.at(-1) : undefined;
  if (last) return writeCursor([kind, last.user_id, last.item]);
  return kind === "RIGHT" ? writeCursor(["POINTS", user, ""]) : undefined;
}

async function verifyChain(
  database: Database,
  chain: Chain,
  bounds: Bounds,
): Promise<ChainVerifier> {
  const verifier = new ChainVerifier(chain, bounds);
  let rows = chain.rows;
  for (let depth = 1; verifier.next; depth++) {
    if (depth > rowsAtOnce) {
      rows = await findMore(database, chain, verifier.next, rowsAtOnce);
      depth = 1;
    }
    verifier.verify(rows.filter((row) => row.depth === depth));
  }
  return verifier;
}
