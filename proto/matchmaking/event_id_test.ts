import assert from "node:assert/strict";
import { eventIdOf } from "./event_id.ts";

const uuid = "01a1eece-e608-7de8-b25d-e13b858611ce";
const ann = { match_id: null, user_id: "ann", ticket_id: `rank-${uuid}` };
const found = { ...ann, event_type: "MatchFound", match_id: uuid };

// The ids were computed by another implementation, Python's uuid5.

Deno.test("an event of a match has one id for each user, whatever the ticket is called", () => {
  assert.equal(eventIdOf(found), "c9e7fa4b-a46a-57ed-9a2c-cd5de04ad795");
  assert.equal(eventIdOf({ ...found, ticket_id: "broken" }), eventIdOf(found));
  const bob = { ...found, user_id: "bob" };
  assert.equal(eventIdOf(bob), "7c7e7049-dd4e-5736-8f8e-98149460973c");
});

Deno.test("the end of a ticket has one id for each type, whoever the user is", () => {
  const expired = { ...ann, event_type: "TicketExpired" };
  const invalid = { ...ann, event_type: "TicketInvalid" };
  assert.equal(eventIdOf(expired), "0eed73d7-2f32-5cba-9987-97969b24047b");
  assert.equal(eventIdOf(invalid), "08f413a0-ba17-5ad6-a892-365be45a478a");
  assert.equal(eventIdOf({ ...invalid, user_id: "" }), eventIdOf(invalid));
});

Deno.test("a broken ticket without a UUID at its end has ids too", () => {
  const broken = { ...ann, ticket_id: "rank-broken" };
  const ids = ["TicketExpired", "TicketInvalid"]
    .map((event_type) => eventIdOf({ ...broken, event_type }));
  assert.deepEqual(ids, [
    "16feec4e-2878-54b8-91bc-33dc3d39ecb2",
    "1a4ea3b1-99b4-52cc-b1b5-c23f6e1303c8",
  ]);
  for (const ticket_id of ["", `${uuid}x`, `rank-${uuid.slice(0, -1)}`]) {
    assert.match(
      eventIdOf({ ...broken, event_type: "TicketInvalid", ticket_id }),
      /^[0-9a-f-]{36}$/,
    );
  }
});
