import type { Answer, Ask } from "@kenri/shared/http/ask_service.ts";
import assert from "node:assert/strict";
import type { z } from "zod";
import { accountClient } from "./account_client.ts";
import type { DependencyClient } from "./dependencies.ts";
import { apiError } from "./errors.ts";
import type { Session } from "./session/session.ts";

const session: Session = {
  ...{ sessionId: crypto.randomUUID(), userId: crypto.randomUUID(), provider: "p", epoch: 1 },
  ...{ issuedAtMs: 0, expiresAtMs: 1_000, issuerSession: undefined },
};
const state = { account_status: "ACTIVE", roles: ["USER"], session_epoch: 2, ended: false };

function clientOf(answer: (request: Ask) => Answer) {
  const asked: Ask[] = [];
  const ask = (request: Ask) => {
    asked.push(request);
    return Promise.resolve().then(() => answer(request));
  };
  const read = <Value>({ text }: Answer, schema: z.ZodType<Value>) =>
    schema.parse(JSON.parse(text));
  const dependency: DependencyClient = {
    ...{ ask, read, close: () => {} },
    json: async (request, schema) => read(await ask(request), schema),
  };
  return { client: accountClient(dependency), asked };
}

const json = (value: unknown, headers = {}): Answer => (
  { status: 200, headers: new Headers(headers), text: JSON.stringify(value) }
);

Deno.test("a state has the version of its account, by which the newer of two is known", async () => {
  const { client, asked } = clientOf(() => json(state, { ETag: '"17"' }));
  assert.deepEqual(await client.stateOf(session), {
    ...{ version: 17, status: "ACTIVE", roles: ["USER"], epoch: 2, ended: false },
  });
  const issuerSession = crypto.randomUUID();
  await client.stateOf({ ...session, issuerSession });
  const path = `/v1/sessions/${session.sessionId}?user_id=${session.userId}`;
  assert.deepEqual(asked.map(({ path }) => path), [
    ...[path, `${path}&issuer_session=${issuerSession}`],
  ]);
});

Deno.test("an answer without the version is invalid, because it would count as the oldest", async () => {
  const suspended = { ...state, account_status: "SUSPENDED" };
  for (const headers of [{}, { ETag: "17" }, { ETag: '"abc"' }, { ETag: '""' }]) {
    const { client } = clientOf(() => json(suspended, headers));
    await assert.rejects(client.stateOf(session), { code: "ACCOUNT_INVALID_RESPONSE" });
  }
  const { client } = clientOf(() => json(suspended, { ETag: 'W/"17"' })); // a proxy has packed it
  assert.equal((await client.stateOf(session))?.version, 17);
});

Deno.test("a user who is gone has no state, and any other refusal is an error", async () => {
  const failing = (code: "ACCOUNT_NOT_FOUND" | "ACCOUNT_FORBIDDEN") =>
    clientOf(() => {
      throw apiError(code, "no");
    }).client.stateOf(session);
  assert.equal(await failing("ACCOUNT_NOT_FOUND"), undefined);
  await assert.rejects(failing("ACCOUNT_FORBIDDEN"), { code: "ACCOUNT_FORBIDDEN" });
});

Deno.test("all pages of ended sessions are loaded", async () => {
  const ids = Array.from({ length: 5 }, () => crypto.randomUUID());
  const { client } = clientOf(({ path }) => {
    const at = Number(new URLSearchParams(path.split("?")[1]).get("cursor") ?? 0);
    const sessions = ids.slice(at, at + 2).map((session_id) => ({ session_id, expires_at: "" }));
    return json({ sessions, ...(at + 2 < ids.length ? { next_cursor: `${at + 2}` } : {}) });
  });
  const found = await Array.fromAsync(client.ended());
  assert.deepEqual(found.map(({ session_id }) => session_id), ids);
});
