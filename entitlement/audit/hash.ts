import { utc } from "@kenri/shared/postgres/postgres.ts";
import { sha256 } from "@kenri/shared/process/sha256.ts";

// An audit row is sealed with a hash over its content and over the hash of the previous row of the
// same entitlement. PostgreSQL computes and checks it with these expressions; docs/audit.md lists
// them for auditors who do not want to rely on this service.

// A digest of the columns that identify a person. When these are erased, the digest replaces them
// in the hash. The salt is erased as well, so nobody can find the columns by guessing. The function
// erase_audited of the database computes the same digest.
export function personDigest(row: string): string {
  return sha256InSql(`${row}.salt::text`, ...of(row, "user_id", "source_id", "request_id"));
}

// The hash of a JSON array of texts and nulls, so that different contents never give the same text.
export function auditHash(row: string, digest = personDigest(row)): string {
  return sha256InSql(
    `encode(${digest}, 'hex')`,
    `encode(${row}.previous_hash, 'hex')`,
    utc(`${row}.previous_at`),
    `${row}.audit_id::text`,
    utc(`${row}.occurred_at`),
    ...of(row, "stock_keeping_unit", "action", "source", "caller"),
    `${row}.detail::text`, // with the version
  );
}

// A mark is a number for each row, or for each version that has a row without a hash. Two sets of
// rows with the same sum of marks are the same set. Marks need not be secret: a row that only one
// of the sets has can only increase the sum.
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
  return `('x' || left(encode(${sha256InSql(...texts)}, 'hex'), ${markDigits}))::bit(60)::bigint`;
}

// The same as markOfUnhashed, computed without a row.
export function markOfVersion(userId: string, stockKeepingUnit: string, version: number): bigint {
  const user = userId.replace(/^erased-.*/, "erased");
  const text = JSON.stringify([user, stockKeepingUnit, `${version}`]);
  return BigInt(`0x${sha256(text).slice(0, markDigits)}`);
}

function of(row: string, ...columns: string[]): string[] {
  return columns.map((column) => `${row}.${column}`);
}

function sha256InSql(...texts: string[]): string {
  return `sha256(convert_to(to_json(array[${texts.join(", ")}])::text, 'UTF8'))`;
}
