import { z } from "@hono/zod-openapi";
import { mostPoints } from "./points.ts";

// The fields that several routes of points have in common.

export function pointAmountSchema(): z.ZodNumber {
  const error = `must be a whole number from 1 to ${mostPoints}`;
  return z.number({ error: ({ input }) => input === undefined ? "is required" : error })
    .int(error).min(1, error).max(mostPoints, error)
    .openapi({ description: `Number of points, at most ${mostPoints}` });
}

export const unitPattern = /^[a-z0-9._-]{1,64}$/;

export function unitSchema(): z.ZodString {
  return z.string("must be a string").regex(
    unitPattern,
    "must be 1 to 64 of a-z, 0-9, dot, underscore and hyphen",
  ).openapi({ description: "What is counted; the default is a setting of the service" });
}

export const transactionSchema = z.object({
  transaction_id: z.uuid().openapi({ description: "Also the id of its event" }),
  kind: z.enum(["GRANT", "SPEND"]),
  unit: z.string(),
  point_amount: z.int().openapi({ description: "Negative for points that were spent" }),
  balance_after: z.int().min(0),
  version: z.int().min(1).openapi({
    description: "Number of transactions of this balance so far, this one included",
  }),
  reason: z.string(),
  source_id: z.string(),
  reservation_id: z.uuid().optional().openapi({
    description: "The reservation that this transaction carried out",
  }),
  created_at: z.iso.datetime(),
}).openapi("PointTransaction");

export const transactionExample = {
  transaction_id: "019b7c2e-5a7e-7c3a-9a51-7d2f0e6f1a01",
  kind: "GRANT" as const,
  unit: "points",
  point_amount: 100,
  balance_after: 100,
  version: 1,
  reason: "campaign",
  source_id: "campaign-1",
  created_at: "2026-01-02T03:04:05.678901Z",
};
