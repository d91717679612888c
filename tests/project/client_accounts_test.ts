// The TypeScript client's methods for accounts against the real service.
import assert from "node:assert/strict";
import { accountClient, Conflict, Refused, type Role } from "../../client/client.ts";
import { newClient, tokensOf } from "../support/access.ts";
import { resolve, startAccount } from "../support/account.ts";
import { openDoor } from "./door.ts";

const shop = newClient(
  ...["shop", "accounts:resolve", "accounts:read", "accounts:write", "accounts:admin"] as const,
);

Deno.test("an account is found, changed, suspended and resumed, and its audit says by whom", async () => {
  await using account = await startAccount(tokensOf(shop));
  const { user_id } = await resolve(account, { provider: "p", subject: "s", name: "Ann" }, {
    Authorization: `Bearer ${shop.token}`,
  });
  const kenri = accountClient(account.url, { token: shop.token });
  const found = await kenri.findUser(user_id);
  assert.deepEqual([found.display_name, found.roles, found.version], ["Ann", ["USER"], 1]);
  const changed = await kenri.changeProfile(user_id, { locale: "en-GB" }, { version: 1 });
  assert.deepEqual([changed.display_name, changed.locale, changed.version], ["Ann", "en-GB", 2]);
  const late = await kenri.changeProfile(user_id, { locale: "de" }, { version: 1 })
    .catch((error) => error);
  assert.ok(late instanceof Refused);
  assert.deepEqual([late.code, late.status], ["PRECONDITION_FAILED", 412]);
  const roles: Role[] = ["USER", "ADMIN"];
  assert.deepEqual((await kenri.setRoles(user_id, roles)).roles, roles);
  const last = await kenri.suspendUser(user_id, "spam").catch((error) => error);
  assert.ok(last instanceof Conflict);
  assert.equal(last.code, "LAST_ADMIN");
  await assert.rejects(kenri.setRoles(user_id, ["OWNER" as Role]), { code: "ROLE_UNKNOWN" });
  await kenri.endSessions(user_id);
  await assert.rejects(kenri.findUser("ann/bob"), { code: "NOT_FOUND" });

  const first = await kenri.listAccountAudit(user_id, { limit: 3 });
  const rest = await kenri.listAccountAudit(user_id, { limit: 3, cursor: first.next_cursor });
  const audit = [...first.audit, ...rest.audit];
  assert.deepEqual(audit.map(({ action, actor }) => [action, actor]), [
    ...["END_SESSIONS", "CHANGE_ROLES", "UPDATE", "REGISTER"].map((action) => [action, "shop"]),
  ]);
});

Deno.test("a suspension whose answer was lost is repeated, and made once", async () => {
  await using account = await startAccount();
  await using door = openDoor(account.url);
  const { user_id } = await resolve(account, { provider: "p", subject: "s" });
  const kenri = accountClient(door.url);
  for (const change of ["suspendUser", "resumeUser"] as const) {
    door.loseNextAnswer(() => Promise.resolve());
    await kenri[change](user_id, "a test");
  }
  const { audit } = await kenri.listAccountAudit(user_id);
  assert.deepEqual(audit.map(({ action }) => action), ["RESUME", "SUSPEND", "REGISTER"]);
});
