import assert from "node:assert/strict";
import type { AccountEventFields } from "@kenri/proto/account/decode.ts";
import { KnownAccounts } from "./known_accounts.ts";
import type { Session } from "./session.ts";

const session: Session = {
  ...{ sessionId: "s-1", userId: "u-1", provider: "p", epoch: 1 },
  ...{ issuedAtMs: 0, expiresAtMs: Infinity, issuerSession: "i-1" },
};
const active = { version: 3, status: "ACTIVE", roles: ["USER"], epoch: 1 };

const event = (fields: Partial<AccountEventFields>): AccountEventFields => ({
  ...{ event_id: "e", event_type: "UserUpdated", occurred_at: "", user_id: "u-1" },
  ...{ version: 4, session_epoch: 1, session_id: null, actor: "", trace_id: "" },
  ...{ account_status: "ACTIVE", roles: ["USER"], ...fields },
});

Deno.test("in whatever order events and answers arrive, the newest version of a user counts", () => {
  const suspended = event({ version: 4, account_status: "SUSPENDED" });
  const older = event({ version: 3 });
  for (const order of [[suspended, older], [older, suspended], [suspended, suspended, older]]) {
    const known = new KnownAccounts({ ttlMs: 1_000 });
    for (const one of order) known.take(one);
    known.learn("u-1", active); // an answer that was read before the suspension
    assert.equal(known.standing(session), "inactive");
  }
});

// A new stream gets the events of the old one again.
Deno.test("an event alone tells nothing of a user, except that sessions have ended", () => {
  const known = new KnownAccounts({ ttlMs: 1_000 });
  known.take(event({ version: 2 }));
  assert.equal(known.standing(session), "unknown");
  known.learn("u-1", active);
  known.take(event({ version: 4, account_status: "SUSPENDED" }));
  assert.equal(known.standing(session), "inactive");
  known.forgetUsers();
  known.take(event({ session_epoch: 2 }));
  assert.equal(known.standing(session), "ended");
  assert.equal(known.standing({ ...session, epoch: 2 }), "unknown");
  known.endEarlier("u-1", 3);
  assert.equal(known.standing({ ...session, epoch: 2 }), "ended");
  known.learn("u-1", active);
  assert.equal(known.standing({ ...session, epoch: 2 }), "ended");
  assert.equal(known.standing({ ...session, epoch: 3 }), "valid");
});

Deno.test("the end of sessions has the version of the account, and counts all the same", () => {
  const known = new KnownAccounts({ ttlMs: 1_000 });
  known.learn("u-1", active);
  assert.equal(known.standing(session), "valid");
  assert.ok(known.take(event({ version: 3, session_epoch: 2 })));
  assert.equal(known.standing(session), "ended");
  known.learn("u-1", active);
  assert.equal(known.standing(session), "ended");
  assert.equal(known.standing({ ...session, epoch: 2 }), "valid");
});

Deno.test("a session that ended stays ended, under its own id and under that of its issuer", () => {
  for (const session_id of ["s-1", "i-1"]) {
    const known = new KnownAccounts({ ttlMs: 1_000 });
    known.learn("u-1", active);
    assert.ok(known.take(event({ version: 3, session_id })));
    assert.ok(!known.take(event({ version: 3, session_id })));
    known.forgetUsers();
    assert.equal(known.standing(session), "ended");
    assert.equal(known.standing({ ...session, sessionId: "s-2", issuerSession: "i-2" }), "unknown");
  }
});
