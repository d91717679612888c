// docs/accounts.md names calls, scopes and error codes that exist.
import assert from "node:assert/strict";
import { statusOfCode as accountStatus } from "../../account/errors.ts";
import { statusOfCode as gatewayStatus } from "../../gateway/errors.ts";
import { root } from "../../tools/root.ts";
import { startAccount } from "../support/account.ts";
import { call } from "../support/api.ts";
import { startGateway } from "../support/gateway.ts";

const page = await Deno.readTextFile(`${root}docs/accounts.md`);
const rows = page.split("\n").filter((line) => line.startsWith("| "))
  .map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()));

Deno.test("docs/accounts.md names each error code with its status", () => {
  const known: Record<string, number> = { ...accountStatus, ...gatewayStatus };
  let checked = 0;
  for (const [answer = ""] of rows) {
    let status = 0;
    for (const [, digits, code] of answer.matchAll(/(\d{3}) |`([…A-Z_]+)`/g)) {
      if (digits) status = Number(digits);
      if (!code || status === 0) continue;
      assert.equal(known[code.replace("…", "ACCOUNT")], status, `${status} ${code}`);
      checked++;
    }
  }
  assert.ok(checked > 15, `${checked}`);
});

Deno.test("docs/accounts.md names all calls of account, with their scopes, and those of the gateway", async () => {
  await using account = await startAccount();
  await using gateway = await startGateway(account);
  const described = async (url: string) =>
    Object.entries<Record<string, { security: { bearer?: string[] }[] }>>(
      (await call(`${url}/openapi.json`)).json.paths,
    ).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { security }]) => ({
        called: `${method.toUpperCase()} ${path}`,
        scope: security?.[0]?.bearer?.[0],
      }))
    );
  const ofAccount = (await described(account.url)).filter(({ called }) => / \/v1\//.test(called));
  const named = rows.filter(([, scope = ""]) => /^`accounts:\w+`$/.test(scope))
    .flatMap(([calls = "", scope = ""]) =>
      callsIn(calls).map((called) => `${called} ${scope.replaceAll("`", "")}`)
    );
  assert.deepEqual(named.sort(), ofAccount.map(({ called, scope }) => `${called} ${scope}`).sort());

  const ofGateway = (await described(gateway.url)).map(({ called }) => called);
  const more = rows.flatMap(([calls = ""]) => callsIn(calls))
    .filter((called) => !ofAccount.some((one) => one.called === called));
  assert.ok(more.length >= 4, more.join());
  for (const called of more) assert.ok(ofGateway.includes(called), called);
});

/** "`POST /v1/x:suspend`, `:resume`" is two calls, and so is "`GET /a`, `/b`". */
function callsIn(cell: string): string[] {
  const calls: string[] = [];
  for (const [, written = ""] of cell.matchAll(/`([^`]+)`/g)) {
    const [, method, path] = /^([A-Z]+) (\/\S+)$/.exec(written) ?? [];
    const before = calls.at(-1) ?? "";
    if (method) calls.push(`${method} ${path}`);
    else if (written.startsWith(":")) calls.push(before.replace(/:\w+$/, written));
    else if (written.startsWith("/") && before) calls.push(`${before.split(" ")[0]} ${written}`);
  }
  return calls;
}
