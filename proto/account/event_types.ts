import { AccountEventType } from "../gen/account/v1/account_event_pb.ts";

// Event types by the names that headers, tables and the API use.
export const typeOfName: ReadonlyMap<string, AccountEventType> = new Map([
  ["UserRegistered", AccountEventType.USER_REGISTERED],
  ["UserUpdated", AccountEventType.USER_UPDATED],
  ["UserSuspended", AccountEventType.USER_SUSPENDED],
  ["UserResumed", AccountEventType.USER_RESUMED],
  ["RolesChanged", AccountEventType.ROLES_CHANGED],
  ["SessionsEnded", AccountEventType.SESSIONS_ENDED],
  ["SessionEnded", AccountEventType.SESSION_ENDED],
]);

const nameOfType = new Map<number, string>([...typeOfName].map(([name, type]) => [type, name]));

// An unknown type, of a newer schema, is represented by its number, so that its events are not
// lost.
export function nameOf(type: number): string {
  return nameOfType.get(type) ?? `${type}`;
}
