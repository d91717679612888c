import { z } from "@hono/zod-openapi";
import type { Answer } from "@kenri/shared/commands/answer.ts";
import { refusal } from "@kenri/shared/commands/answer.ts";
import { uuidPattern } from "@kenri/shared/process/uuid.ts";
import { type Database, query, type Transaction, utc } from "@kenri/shared/postgres/postgres.ts";
import { type Sql, sql } from "@kenri/shared/postgres/sql.ts";
import { statusOfCode, userNotFound } from "./errors.ts";

// An account as it is stored, and as it is answered.

export const allRoles = ["USER", "SUPPORT", "ADMIN"] as const;
export type Role = typeof allRoles[number];
export const statuses = ["ACTIVE", "SUSPENDED", "DELETED"] as const;
export type AccountStatus = typeof statuses[number];

export interface User {
  user_id: string;
  display_name: string | null;
  locale: string | null;
  status: AccountStatus;
  roles: Role[];
  version: number;
  session_epoch: number;
  created_at: string;
  updated_at: string;
}

export const userSchema = z.object({
  user_id: z.uuid(),
  display_name: z.string().nullable(),
  locale: z.string().nullable(),
  status: z.enum(["ACTIVE", "SUSPENDED"]),
  roles: z.array(z.enum(allRoles)),
  version: z.int().openapi({ description: "Number of changes so far" }),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
}).openapi("User");

export const userExample = {
  user_id: "0197f7a0-5f0c-7c3e-9b1d-2f4f3c1a9e57",
  display_name: "Ann",
  locale: "en-GB",
  status: "ACTIVE" as const,
  roles: ["USER" as const],
  version: 1,
  created_at: "2026-01-02T03:04:05.678901Z",
  updated_at: "2026-01-02T03:04:05.678901Z",
};

export function shown({ session_epoch: _, ...user }: User): Omit<User, "session_epoch"> {
  return user;
}

export const etagOf = ({ version }: Pick<User, "version">): string => `"${version}"`;

export function answerOf(user: User): Answer {
  const body = JSON.stringify(shown(user));
  return { status: 200, body, outcome: "applied", headers: { "ETag": etagOf(user) } };
}

export const notFound: Answer = refusal(
  statusOfCode,
  "state_conflict",
  "NOT_FOUND",
  userNotFound,
);

// The roles of `user_id`, in the order of allRoles.
export const rolesOf = (userId: Sql): Sql =>
  sql`array(
      select role
      from account_roles
      where account_roles.user_id = ${userId}
      order by array_position(array['USER', 'SUPPORT', 'ADMIN'], role)
    )`;

export const userColumns = sql`user_id, display_name, locale, status,
    ${rolesOf(sql`users.user_id`)} as roles,
    version, session_epoch,
    ${utc(sql`created_at`)} as created_at,
    ${utc(sql`updated_at`)} as updated_at`;

// A user who was erased is not found.
export async function findUser(
  on: Database | Transaction,
  userId: string,
): Promise<User | undefined> {
  if (!uuidPattern.test(userId)) return undefined;
  const [user] = await query<User & Record<string, unknown>>(
    on,
    sql`
    select ${userColumns}
    from users
    where user_id = ${userId}
      and status <> 'DELETED'`,
  );
  return user;
}
