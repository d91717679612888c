import assert from "node:assert/strict";
import fc from "fast-check";
import { UnreadablePayload } from "../payload.ts";
import { decodeMatchmakingEvent } from "./decode.ts";
import { encodeMatchmakingEvent } from "./encode.ts";

const id = "c9e7fa4b-a46a-57ed-9a2c-cd5de04ad795";
const match = "0192d4e0-7b6a-7c31-8f2e-5d8a4b6c9e11";
const text = fc.string({ unit: "binary" }).filter((value) => !value.includes("\0"));

const payload = fc.record({
  event_id: fc.constant(id),
  event_type: fc.constantFrom("MatchFound", "TicketExpired", "TicketInvalid"),
  occurred_at: fc.constant("2026-01-02T03:04:05.678901Z"),
  match_id: fc.constantFrom(match, null),
  mode: text,
  trace_id: text,
  user_id: text,
  ticket_id: text,
  peer_user_ids: fc.array(text, { maxLength: 3 }),
  waited_ms: fc.maxSafeNat(),
}, { noNullPrototype: true });

Deno.test("an event of matchmaking is read as it was encoded, with no match if it had none", () => {
  fc.assert(fc.property(payload, (fields) => {
    assert.deepEqual(decodeMatchmakingEvent(encodeMatchmakingEvent(id, fields)), fields);
  }));
});

Deno.test("fields of matchmaking that can't be encoded are refused by name", () => {
  const [good] = fc.sample(payload, 1);
  const bad: [Record<string, unknown>, string][] = [
    [{ event_type: "MATCH_FOUND" }, "event_type is unknown"],
    [{ occurred_at: "yesterday" }, "occurred_at is not a time"],
    [{ match_id: undefined }, "match_id is not a string"],
    [{ mode: null }, "mode is not a string"],
    [{ trace_id: undefined }, "trace_id is not a string"],
    [{ user_id: null }, "user_id is not a string"],
    [{ ticket_id: 7 }, "ticket_id is not a string"],
    [{ peer_user_ids: "bob" }, "peer_user_ids is not a list of strings"],
    [{ peer_user_ids: [7] }, "peer_user_ids is not a list of strings"],
    [{ waited_ms: "7" }, "waited_ms is not a whole number"],
    [{ waited_ms: 0.5 }, "waited_ms is not a whole number"],
  ];
  for (const [fields, message] of bad) {
    assert.throws(
      () => encodeMatchmakingEvent(id, { ...good, ...fields }),
      (error) => error instanceof UnreadablePayload && error.message === message,
      message,
    );
  }
});
