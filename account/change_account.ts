import { type Answer, refusal } from "@kenri/shared/commands/answer.ts";
import type { Command } from "@kenri/shared/commands/command.ts";
import type { OutboxRow } from "@kenri/shared/outbox/outbox_table.ts";
import { query, type Transaction, utc } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { uuidPattern, uuidv7 } from "@kenri/shared/process/uuid.ts";
import { notAdmin, notOwner } from "./acting.ts";
import { type Effect, type Situation, unchanged } from "./change.ts";
import { type ChangeProfile, decideProfile } from "./change_profile.ts";
import { type ChangeRoles, decideRoles } from "./change_roles.ts";
import { type ChangeStatus, decideStatus } from "./change_status.ts";
import { decideEnd, decideEndAll, type EndSession, type EndSessions } from "./end_sessions.ts";
import { statusOfCode } from "./errors.ts";
import {
  announceChanges,
  storeAudit,
  storeEndedSessions,
  storeRoles,
  updateUsers,
} from "./store_changes.ts";
import { type User, userColumns } from "./user.ts";

// All changes of accounts are one command, so that those of one user are carried out one after the
// other. What each of them means is in its own file.

export type Input = ChangeProfile | ChangeStatus | ChangeRoles | EndSessions | EndSession;

// Those that may take the role from the last ADMIN are carried out one after the other as well. For a
// user, only an ADMIN may make them.
const concernsAdmins: Record<Input["kind"], boolean> = {
  profile: false,
  status: true,
  roles: true,
  end_sessions: false,
  end_session: false,
};

export const adminsLock = "admins";
export const userLock = (userId: string): string => `user ${userId.toLowerCase()}`;

export const changeCommand: Command<Input, Situation, Effect, OutboxRow> = {
  name: "accounts",
  answerTtlMs: 0, // none is stored: to repeat a request changes nothing
  identityOf: () => undefined,
  locksOf: ({ kind, userId }) => [userLock(userId), ...(concernsAdmins[kind] ? [adminsLock] : [])],
  find: findSituations,
  decide: (input, situation) => {
    if (isForbidden(input, situation)) return unchanged(forbidden(input));
    switch (input.kind) {
      case "profile":
        return decideProfile(input, situation);
      case "status":
        return decideStatus(input, situation);
      case "roles":
        return decideRoles(input, situation);
      case "end_sessions":
        return decideEndAll(input, situation);
      case "end_session":
        return decideEnd(input, situation);
    }
  },
  apply: {
    event: announceChanges,
    user: updateUsers,
    roles: storeRoles,
    audit: storeAudit,
    session: storeEndedSessions,
  },
};

function isForbidden(
  { kind, forUser, actor, userId }: Input,
  { actorIsAdmin }: Situation,
): boolean {
  const isOwner = actor === userId.toLowerCase() && !concernsAdmins[kind];
  return forUser === true && !isOwner && !actorIsAdmin;
}

function forbidden({ kind }: Input): Answer {
  const message = concernsAdmins[kind] ? notAdmin : notOwner;
  return refusal(statusOfCode, "state_conflict", "FORBIDDEN", message);
}

interface Found {
  user: User;
  isLastAdmin: boolean;
  nextAt: string;
}

async function findSituations(tx: Transaction, inputs: Input[]): Promise<Situation[]> {
  const userIds = inputs.map(({ userId }) => userId).filter(isUuid);
  const actors = inputs.map(({ actor }) => actor).filter(isUuid);
  const sessionIds = inputs.flatMap((input) =>
    input.kind === "end_session" ? [input.session.session_id] : []
  );
  const [users, admins, ended] = await Promise.all([
    findUsers(tx, userIds),
    findAdmins(tx, actors),
    findEnded(tx, sessionIds),
  ]);
  return inputs.map((input): Situation => {
    const found = users.get(input.userId.toLowerCase());
    return {
      user: found?.user,
      isLastAdmin: found?.isLastAdmin ?? false,
      actorIsAdmin: admins.has(input.actor.toLowerCase()),
      hasEnded: input.kind === "end_session" && ended.has(input.session.session_id),
      at: found?.nextAt ?? "",
      eventId: uuidv7(),
    };
  });
}

const isUuid = (text: string) => uuidPattern.test(text);

async function findUsers(tx: Transaction, ids: string[]): Promise<Map<string, Found>> {
  if (ids.length === 0) return new Map();
  const found = await query<User & { is_last_admin: boolean; next_at: string }>(
    tx,
    sql`
    select ${userColumns},
      ${utc(sql`greatest(clock_timestamp(), last_event_at + interval '1 microsecond')`)} as next_at,
      not exists (
        select
        from account_roles other
        join users holder on holder.user_id = other.user_id
        where other.role = 'ADMIN'
          and holder.status = 'ACTIVE'
          and holder.user_id <> users.user_id
      ) as is_last_admin
    from users
    where user_id = any(${ids}::uuid[])
      and status <> 'DELETED'`,
  );
  return new Map(
    found.map(({ is_last_admin: isLastAdmin, next_at: nextAt, ...user }) => [
      user.user_id,
      { user, isLastAdmin, nextAt },
    ]),
  );
}

// A user whose account is not active has no rights.
async function findAdmins(tx: Transaction, ids: string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  const found = await query<{ user_id: string }>(
    tx,
    sql`
    select user_id
    from account_roles
    join users using (user_id)
    where user_id = any(${ids}::uuid[])
      and role = 'ADMIN'
      and status = 'ACTIVE'`,
  );
  return new Set(found.map(({ user_id }) => user_id));
}

async function findEnded(tx: Transaction, ids: string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  const found = await query<{ session_id: string }>(
    tx,
    sql`
    select session_id
    from ended_sessions
    where session_id = any(${ids}::uuid[])`,
  );
  return new Set(found.map(({ session_id }) => session_id));
}
