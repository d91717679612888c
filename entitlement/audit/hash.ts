import { createHash } from "node:crypto";
import { utc } from "@kenri/shared/postgres/postgres.ts";

// What an audit row is sealed with: a hash over its content and the hash of the row before it, of the
// same entitlement. It is written and checked by PostgreSQL, by these expressions; docs/audit.md has
// them for whoever wants to check without this service.

// Of what leads to a person. It can be erased, and then this digest stands for it; without the salt,
// which is erased as well, nobody can guess what it was made of. The function erase_audited has it too.
export function personDigest(row: string): string {
  return sha256(`${row}.salt::text`, ...of(row, "user_id", "source_id", "request_id"));
}

// JSON arrays of texts and nulls: no two contents are written alike.
export function auditHash(row: string, digest = personDigest(row)): string {
  return sha256(
    `encode(${digest}, 'hex')`,
    `encode(${row}.previous_hash, 'hex')`,
    utc(`${row}.previous_at`),
    `${row}.audit_id::text`,
    utc(`${row}.occurred_at`),
    ...of(row, "stock_keeping_unit", "action", "source", "caller"),
    `${row}.detail::text`, // with the version
  );
}

// A number for each row, and for each version that has a row without a hash. Two sets of rows with the
// same sum of these numbers are the same set. It need not be secret: a row that only one of the sets
// has can only add to the sum.
export const markOfRow = (row: string): string =>
  mark(`${row}.audit_id::text`, utc(`${row}.occurred_at`), `encode(${row}.hash, 'hex')`);

export const markOfUnhashed = (row: string): string =>
  mark(
    `regexp_replace(${row}.user_id, '^erased-.*', 'erased')`,
    `${row}.stock_keeping_unit`,
    `${row}.detail->>'version'`,
  );

const markDigits = 15;

function mark(...texts: string[]): string {
  return `('x' || left(encode(${sha256(...texts)}, 'hex'), ${markDigits}))::bit(60)::bigint`;
}

// The second one, without a row.
export function markOfVersion(userId: string, stockKeepingUnit: string, version: number): bigint {
  const user = userId.replace(/^erased-.*/, "erased");
  const text = JSON.stringify([user, stockKeepingUnit, `${version}`]);
  return BigInt(`0x${createHash("sha256").update(text).digest("hex").slice(0, markDigits)}`);
}

function of(row: string, ...columns: string[]): string[] {
  return columns.map((column) => `${row}.${column}`);
}

function sha256(...texts: string[]): string {
  return `sha256(convert_to(to_json(array[${texts.join(", ")}])::text, 'UTF8'))`;
}
