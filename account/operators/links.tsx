import type { JSX } from "hono/jsx/jsx-runtime";
import { queryOf } from "@kenri/shared/console/ask.ts";

// The paths of the pages of accounts, and the links to them.

export const accountsPath = "/console/accounts";
export const findPath = `${accountsPath}/find`;
export const changePath = `${accountsPath}/change`;

export function pathOf(userId: string): string {
  return `${accountsPath}${queryOf({ user_id: userId })}`;
}

export function AccountLink({ id }: { id: string }): JSX.Element {
  return (
    <a href={pathOf(id)}>
      <code>{id}</code>
    </a>
  );
}
