import assert from "node:assert/strict";
import type { SessionState } from "../account_client.ts";
import { apiError } from "../errors.ts";
import { type Checked, sessionCheck } from "./check.ts";
import { KnownAccounts } from "./known_accounts.ts";
import type { Session } from "./session.ts";

const session: Session = {
  ...{ sessionId: "s-1", userId: "u-1", provider: "p", epoch: 1 },
  ...{ issuedAtMs: 0, expiresAtMs: Date.now() + 60_000, issuerSession: undefined },
};
const active = { version: 3, status: "ACTIVE", roles: ["USER"], epoch: 1, ended: false };
const [fresh, stale] = [5_000, 5_001];
const unavailable = () => apiError("ACCOUNT_UNAVAILABLE", "the account service can't be reached");

interface Setting {
  ageMs?: number; // since the stream was read
  watermarkAgeMs?: number;
  answer?: SessionState | undefined | Error; // of the account service
}

function stage({ ageMs = fresh, watermarkAgeMs = fresh, ...given }: Setting) {
  const known = new KnownAccounts({ ttlMs: 60_000 });
  const feed = { ageMs, watermarkAgeMs };
  let asked = 0;
  const stateOf = () => {
    asked++;
    const answer = "answer" in given ? given.answer : active;
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  };
  const check = sessionCheck({ feed, known, account: { stateOf }, stalenessMs: 5_000 });
  const standing = async () => (await check(session) satisfies Checked).standing;
  return { known, standing, asked: () => asked };
}

Deno.test("what is known is enough while the stream was read and is complete", async () => {
  const { known, standing, asked } = stage({});
  known.learn("u-1", active);
  assert.equal(await standing(), "valid");
  assert.equal(asked(), 0);
});

Deno.test("a user who is not known is asked for once", async () => {
  const { standing, asked } = stage({});
  assert.deepEqual([await standing(), await standing()], ["valid", "valid"]);
  assert.equal(asked(), 1);
});

Deno.test("as long as events may be missing, each request asks", async () => {
  for (const setting of [{ ageMs: stale }, { watermarkAgeMs: stale }, { ageMs: Infinity }]) {
    const answer = { ...active, version: 4, status: "SUSPENDED" };
    const { known, standing, asked } = stage({ ...setting, answer });
    known.learn("u-1", active);
    assert.deepEqual([await standing(), await standing()], ["inactive", "inactive"]);
    assert.equal(asked(), 2, JSON.stringify(setting));
  }
});

Deno.test("a session that is known to have ended is not asked for, however old the events are", async () => {
  const { known, standing, asked } = stage({ ageMs: Infinity, watermarkAgeMs: Infinity });
  known.end("s-1", Date.now() + 60_000);
  assert.equal(await standing(), "ended");
  assert.equal(asked(), 0);
});

Deno.test("a session that has ended by the account service's word stays ended", async () => {
  const endings = [{ ...active, ended: true }, { ...active, epoch: 2 }];
  for (const answer of endings) {
    const { known, standing } = stage({ watermarkAgeMs: stale, answer });
    assert.equal(await standing(), "ended");
    known.learn("u-1", active);
    assert.equal(known.standing(session), "ended");
  }
});

Deno.test("a user whom the account service does not know is not let in, and is asked for again", async () => {
  const { known, standing, asked } = stage({ watermarkAgeMs: stale, answer: undefined });
  assert.equal(await standing(), "ended");
  assert.equal(await standing(), "ended");
  assert.equal(asked(), 2);
  known.learn("u-1", active); // the answer was that of a proxy
  assert.equal(known.standing(session), "valid");
});

Deno.test("an answer from before the users were forgotten is asked for again", async () => {
  const known = new KnownAccounts({ ttlMs: 60_000 });
  const answers = [active, { ...active, version: 4, status: "SUSPENDED" }];
  const stateOf = () => {
    const answer = answers.shift();
    if (answers.length > 0) known.forgetUsers(); // the event of the suspension can't be read
    return Promise.resolve(answer);
  };
  const feed = { ageMs: fresh, watermarkAgeMs: fresh };
  const check = sessionCheck({ feed, known, account: { stateOf }, stalenessMs: 5_000 });
  assert.equal((await check(session)).standing, "inactive");
  assert.equal(known.standing(session), "inactive");
});

Deno.test("while events may be missing, nobody is let in without the account service", async () => {
  for (const setting of [{ ageMs: stale }, { watermarkAgeMs: stale }]) {
    const { known, standing } = stage({ ...setting, answer: unavailable() });
    known.learn("u-1", active);
    await assert.rejects(standing(), { code: "ACCOUNT_UNAVAILABLE" }, JSON.stringify(setting));
  }
});

Deno.test("a refusal of the account service lets nobody in", async () => {
  const answer = apiError("ACCOUNT_FORBIDDEN", "the scope is missing");
  const { known, standing } = stage({ watermarkAgeMs: stale, answer });
  known.learn("u-1", active);
  await assert.rejects(standing(), { code: "ACCOUNT_FORBIDDEN" });
});
