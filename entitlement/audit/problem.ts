import { z } from "@hono/zod-openapi";

// What the verification of the audit has found.

export type Kind =
  | "CHANGED"
  | "REPLACED"
  | "MISSING"
  | "LINK"
  | "VERSION"
  | "TIME"
  | "HASH_REMOVED"
  | "UNHASHED"
  | "ERASED_UNRECORDED"
  | "ENTITLEMENT"
  | "BALANCE"
  | "STRAY";

export const problemSchema = z.object({
  kind: z.string(),
  user_id: z.string(),
  stock_keeping_unit: z.string(),
  version: z.int().nullable(),
  at: z.string().nullable(),
  audit_id: z.uuid().nullable(),
  says: z.string(),
}).openapi("AuditProblem");

export type AuditProblem = z.infer<typeof problemSchema>;

export type Problem = AuditProblem & { kind: Kind };
