// The customers of the shop have accounts if the account service runs, as if each had logged in once. So
// whoever logs in as one of them sees what the shop does for that customer.

import { uuidPattern } from "../../shared/process/uuid.ts";

export interface Accounts {
  /** By name. A customer without an account is called by the name. */
  ids: Map<string, string>;
  nameOf(user: string): string;
}

interface Where {
  account: string;
  issuer: string; // as the tokens of its users name it
  headers: Record<string, string>;
}

export async function openAccounts(where: Where, names: string[]): Promise<Accounts> {
  const found = await Promise.all(
    names.map(async (name): Promise<[string, string][]> => {
      const id = await register(where, name).catch(() => undefined);
      return id === undefined ? [] : [[name, id]];
    }),
  );
  const ids = new Map(found.flat());
  const namesOfIds = new Map([...ids].map(([name, id]) => [id, name]));
  return { ids, nameOf: (user) => namesOfIds.get(user) ?? user };
}

async function register({ account, issuer, headers }: Where, name: string) {
  const answer = await fetch(`${account}/v1/identities:resolve`, {
    method: "POST",
    headers: { ...headers, "Content-Type": "application/json" },
    body: JSON.stringify({ provider: issuer, subject: name, name }),
    signal: AbortSignal.timeout(5_000),
    redirect: "error", // the credential is for nobody else
  });
  const { user_id } = await answer.json();
  return uuidPattern.test(user_id) ? String(user_id) : undefined;
}
