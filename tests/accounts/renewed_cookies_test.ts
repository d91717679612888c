// A session in use gets a new cookie now and then.
import assert from "node:assert/strict";
import { Seals } from "../../gateway/session/seal.ts";
import { until } from "../../tools/servers/wait.ts";
import { startAccount } from "../support/account.ts";
import type { Answer } from "../support/api.ts";
import { csrf, logIn, logOut, me, sessionKey, startGateway } from "../support/gateway.ts";

const seals = new Seals([Uint8Array.fromBase64(sessionKey, { alphabet: "base64url" })]);
const idleSeconds = 24; // a new cookie after two seconds

Deno.test("a session in use gets a new cookie, with which it lasts no longer than before", async () => {
  await using account = await startAccount();
  await using gateway = await startGateway(account, { GATEWAY_SESSION_IDLE: `${idleSeconds}s` });
  const ann = await logIn(account);
  const first = await contentOf(ann.cookie);
  assert.equal(cookieIn(await me(gateway, ann)), undefined, "it is new");
  let renewed = "";
  await until("the cookie is renewed", async () => {
    renewed = cookieIn(await me(gateway, ann)) ?? "";
    return renewed !== "";
  });
  const { issued_at, exp, ...content } = await contentOf(renewed);
  const { issued_at: before, exp: _, ...expected } = first;
  assert.deepEqual(content, expected, "the session, its user, its epoch and its end are the same");
  assert.ok(issued_at - before >= idleSeconds / 12 * 1_000);
  assert.ok(exp <= Math.ceil(issued_at / 1_000) + idleSeconds);
  for (const cookie of [ann.cookie, renewed]) {
    assert.equal((await me(gateway, { cookie })).status, 200, "requests at once disturb nobody");
  }
  const ended = await logOut(gateway, ann, await csrf(gateway, ann));
  assert.deepEqual(ended.headers.getSetCookie().map((line) => line.split(";")[0]), ["kenri="]);
  for (const cookie of [ann.cookie, renewed]) {
    const refused = await me(gateway, { cookie });
    assert.deepEqual([refused.status, cookieIn(refused)], [401, undefined]);
  }
});

function cookieIn({ headers }: Answer): string | undefined {
  const [line] = headers.getSetCookie();
  if (line === undefined) return undefined;
  const seconds = Number(/; Max-Age=(\d+);/.exec(line)?.[1]);
  assert.ok(seconds <= idleSeconds, line);
  return line.split(";")[0];
}

interface Content extends Record<string, unknown> {
  issued_at: number;
  exp: number;
}

async function contentOf(cookie: string): Promise<Content> {
  return await seals.open("session", cookie.slice("kenri=".length)) as Content;
}
