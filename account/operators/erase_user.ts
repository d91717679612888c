import { lockNames } from "@kenri/shared/commands/locks.ts";
import { errorAnswer } from "@kenri/shared/http/fields.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { type Trace, traceOf } from "@kenri/shared/http/trace.ts";
import {
  type Erased,
  eraseUserRoute,
  eraseUserWith,
  type Erasure,
  recordErasure,
} from "@kenri/shared/operators/erasure.ts";
import {
  type Database,
  query,
  type Transaction,
  transaction,
} from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { uuidPattern } from "@kenri/shared/process/uuid.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import { activeTraceparent } from "@kenri/shared/telemetry/tracing.ts";
import type { Handler } from "hono";
import { type Change, next, type Situation } from "../change.ts";
import { adminsLock, changeCommand, type Input, userLock } from "../change_account.ts";
import { apiError, type ErrorCode } from "../errors.ts";
import { lastAdminMessage, lastAdminRefusal } from "../last_admin.ts";
import { announceChanges, storeAudit, updateUsers } from "../store_changes.ts";
import type { User } from "../user.ts";

// Erases a user: the identities and what they say of the person, the name, the roles, and the reasons
// in the audit. The row of the user stays as DELETED, so its random id is never given to anybody else;
// events contain nothing but this id. All sessions end. Whoever logs in with the same identity is
// a new user.

const describedRoute = eraseUserRoute("account");

export const eraseRoute: ScopedRoute = {
  ...describedRoute,
  responses: {
    ...describedRoute.responses,
    409: errorAnswer<ErrorCode>(lastAdminRefusal.description, lastAdminRefusal.messages),
  },
};

export function eraseUser(database: Database, wakeRelay: Wakeup): Handler {
  return (context) => {
    const trace = traceOf(context.req.raw.headers, activeTraceparent());
    return eraseUserWith(async (erasure) => {
      if (!uuidPattern.test(erasure.userId)) return nothing;
      const erased = await transaction(database, (tx) => erase(tx, erasure, trace));
      wakeRelay.trigger();
      return erased;
    })(context, () => Promise.resolve());
  };
}

const nothing: Erased = { waiting: 0, rows: {} };

async function erase(tx: Transaction, erasure: Erasure, trace: Trace): Promise<Erased> {
  const { dryRun, who: actor } = erasure;
  const userId = await findId(tx, erasure.userId);
  if (userId === undefined) return nothing;
  await lockNames(tx, [userLock(userId), adminsLock]);
  const input: Input = { kind: "end_sessions", userId, actor, ...trace };
  const [situation] = await changeCommand.find(tx, [input]);
  const user = situation?.user;
  if (!situation || !user) return { ...nothing, user_id: userId };
  refuseLastAdmin(user, situation);
  const rows = await countRows(tx, user.user_id);
  if (dryRun) return { waiting: 0, rows, user_id: userId };
  await recordErasure(tx, erasure, rows);
  await deleteIdentities(tx, user.user_id); // before the user, in the order of a login
  await deleteRoles(tx, user.user_id);
  const erased = next(user, situation, {
    display_name: null,
    locale: null,
    status: "DELETED",
    roles: [],
    session_epoch: user.session_epoch + 1,
  });
  const change: Change = {
    request: input,
    action: "ERASE",
    user: erased,
    at: situation.at,
    eventId: situation.eventId,
    reason: null, // it is in the log of operations, which does not say whom it was about
    detail: {},
    session: null,
  };
  await updateUsers(tx, [change]);
  await eraseRest(tx, user.user_id);
  await storeAudit(tx, [change]);
  await announceChanges(tx, [change], undefined);
  return { waiting: 0, rows, user_id: userId };
}

// An operator may write the id in capitals. The other services compare ids as texts, and their users
// need not have accounts, so only the id of an account is known to be in lower case there. It is also
// found after the account was erased.
async function findId(tx: Transaction, userId: string): Promise<string | undefined> {
  const [found] = await query<{ user_id: string }>(
    tx,
    sql`
    select user_id
    from users
    where user_id = ${userId}`,
  );
  return found?.user_id;
}

function refuseLastAdmin({ status, roles }: User, { isLastAdmin }: Situation): void {
  if (status === "ACTIVE" && roles.includes("ADMIN") && isLastAdmin) {
    throw apiError("LAST_ADMIN", lastAdminMessage);
  }
}

async function countRows(tx: Transaction, userId: string): Promise<Record<string, number>> {
  const [counted] = await query<Record<string, number>>(
    tx,
    sql`
    select 1 as users,
      (select count(*) from identities where user_id = ${userId}) as identities,
      (select count(*) from account_roles where user_id = ${userId}) as account_roles,
      (select count(*) from audit_logs where user_id = ${userId} and reason is not null) as audit_logs`,
  );
  return counted ?? {};
}

async function deleteIdentities(tx: Transaction, userId: string): Promise<void> {
  await query(
    tx,
    sql`
    delete from identities
    where user_id = ${userId}`,
  );
}

async function deleteRoles(tx: Transaction, userId: string): Promise<void> {
  await query(
    tx,
    sql`
    delete from account_roles
    where user_id = ${userId}`,
  );
}

// Only a function of the database's owner can change the audit, and only of a DELETED user.
async function eraseRest(tx: Transaction, userId: string): Promise<void> {
  await query(
    tx,
    sql`
    update users
    set picture = null
    where user_id = ${userId}`,
  );
  await query(tx, sql`select erase_audit_reasons(${userId})`);
}
