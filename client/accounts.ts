import { type CallOptions, type PageOptions, query, type Requests } from "./requests.ts";

// Accounts of users, for services that may change them. A user's own page uses the gateway.

export type Role = "USER" | "SUPPORT" | "ADMIN";

export interface User {
  user_id: string;
  display_name: string | null;
  locale: string | null;
  status: "ACTIVE" | "SUSPENDED";
  roles: Role[];
  /** The number of changes so far. */
  version: number;
  created_at: string;
  updated_at: string;
}

/** A field that is absent stays as it is, and null clears it. */
export interface ProfileChange {
  display_name?: string | null;
  locale?: string | null;
}

export interface AccountAuditEntry {
  /** Also the id of the event. */
  audit_id: string;
  occurred_at: string;
  action: string;
  /** A user_id, or the name of a caller. */
  actor: string;
  reason: string | null;
  version: number;
  detail: Record<string, unknown>;
  trace_id: string;
}

export interface AccountAudit {
  audit: AccountAuditEntry[];
  /** Present if there are more. */
  next_cursor?: string;
}

export interface AccountsClient {
  findUser(userId: string, options?: CallOptions): Promise<User>;
  /**
   * Changes a profile. With `version`, only if the account still has it; otherwise it is Refused with
   * `PRECONDITION_FAILED`. That also happens if the change was made and its answer was lost, so look at
   * the account then.
   */
  changeProfile(
    userId: string,
    change: ProfileChange,
    options?: CallOptions & { version?: number },
  ): Promise<User>;
  /** Every request of the user is refused from now on. Throws a Conflict `LAST_ADMIN`. */
  suspendUser(userId: string, reason: string, options?: CallOptions): Promise<void>;
  /** The sessions of the user work again. */
  resumeUser(userId: string, reason: string, options?: CallOptions): Promise<void>;
  /** Sets all roles. Throws a Conflict `LAST_ADMIN`. */
  setRoles(userId: string, roles: Role[], options?: CallOptions): Promise<User>;
  /** Logs the user out everywhere. */
  endSessions(userId: string, options?: CallOptions): Promise<void>;
  /** A page of what was changed in the account, the newest first. */
  listAccountAudit(userId: string, options?: PageOptions): Promise<AccountAudit>;
}

export function accountsClient(requests: Requests): AccountsClient {
  const pathOf = (userId: string) => `/v1/users/${encodeURIComponent(userId)}`;
  return {
    findUser: (userId, call) => requests.get(pathOf(userId), call),
    changeProfile: (userId, change, { version, ...call } = {}) => {
      const headers = version === undefined ? {} : { "If-Match": `"${version}"` };
      return requests.send("PATCH", pathOf(userId), change, call, headers);
    },
    suspendUser: (userId, reason, call) =>
      requests.send("POST", `${pathOf(userId)}:suspend`, { reason }, call),
    resumeUser: (userId, reason, call) =>
      requests.send("POST", `${pathOf(userId)}:resume`, { reason }, call),
    setRoles: (userId, roles, call) =>
      requests.send("PUT", `${pathOf(userId)}/roles`, { roles }, call),
    endSessions: (userId, call) =>
      requests.send("POST", `${pathOf(userId)}/sessions:end`, undefined, call),
    listAccountAudit: (userId, { limit, cursor, ...call } = {}) =>
      requests.get(`${pathOf(userId)}/audit${query({ limit, cursor })}`, call),
  };
}
