// What a role is not permitted to do.
import assert from "node:assert/strict";
import type pg from "pg";

export async function refuses(service: pg.Client, statement: string): Promise<void> {
  await assert.rejects(service.query(statement), { code: "42501" }, statement);
}
