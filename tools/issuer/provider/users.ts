// Who can log in: three users with names, and any other name that is typed in.
import type { Claims } from "../faults.ts";

const demoUsers: Record<string, Claims> = {
  ann: { name: "Ann Archer", email: "ann@example.com", email_verified: true },
  bob: { name: "Bob Baker", email: "bob@example.com", email_verified: true },
  kim: { name: "Kim Kimura", email: "kim@example.com", email_verified: false },
};

export const demoNames = Object.keys(demoUsers);

export const namePattern = "[a-z0-9][a-z0-9._\\-]{0,63}";
const isName = new RegExp(`^${namePattern}$`);

export function isUser(name: string | null): name is string {
  return name !== null && isName.test(name);
}

export function claimsOf(user: string, changed: Record<string, Claims>): Claims {
  return { ...own(demoUsers, user), ...own(changed, user), sub: user };
}

function own(claims: Record<string, Claims>, user: string): Claims {
  return Object.hasOwn(claims, user) ? claims[user] ?? {} : {};
}
