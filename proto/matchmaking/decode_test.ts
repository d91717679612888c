import { create, toBinary } from "@bufbuild/protobuf";
import assert from "node:assert/strict";
import fc from "fast-check";
import { MatchmakingEventSchema } from "../gen/matchmaking/v1/matchmaking_event_pb.ts";
import { UnreadableMessage } from "../unreadable.ts";
import { decodeMatchmakingEvent } from "./decode.ts";

const good = {
  eventId: "C9E7FA4B-A46A-57ED-9A2C-CD5DE04AD795",
  occurredAt: { seconds: 1_767_323_045n, nanos: 678_901_999 },
  userId: "ann",
  ticketId: "rank-01a1eece-e608-7de8-b25d-e13b858611ce",
  peerUserIds: ["bob"],
};

function bodyOf(fields: Record<string, unknown>): Uint8Array {
  const event = create(MatchmakingEventSchema, { ...good, ...fields } as never);
  return toBinary(MatchmakingEventSchema, event);
}

Deno.test("a type of a newer schema is its number, the id has small letters, the time microseconds", () => {
  const { event_id, event_type, occurred_at } = decodeMatchmakingEvent(bodyOf({ eventType: 99 }));
  assert.equal(event_id, "c9e7fa4b-a46a-57ed-9a2c-cd5de04ad795");
  assert.equal(event_type, "99");
  assert.equal(occurred_at, "2026-01-02T03:04:05.678901Z");
});

Deno.test("events of matchmaking that can't be stored are refused", () => {
  const nul = "a field contains a NUL, which can't be stored";
  const refused: [string, Record<string, unknown>][] = [
    ["event_id is not a UUID", { eventId: "" }],
    ["occurred_at is missing", { occurredAt: undefined }],
    ["waited_ms is out of range", { waitedMs: 2n ** 53n }],
    [nul, { peerUserIds: ["bob", "a\0b"] }],
    ...["matchId", "mode", "traceId", "userId", "ticketId"].map(
      (name): [string, Record<string, unknown>] => [nul, { [name]: "a\0b" }],
    ),
  ];
  for (const [message, fields] of refused) {
    assert.throws(
      () => decodeMatchmakingEvent(bodyOf(fields)),
      (error) => error instanceof UnreadableMessage && error.message === message,
      message,
    );
  }
});

Deno.test("bytes of any kind, and events of matchmaking with some bytes changed, are read or refused", () => {
  const changes = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 5 });
  const changed = changes.map((changes) => {
    const body = bodyOf({});
    for (const [at, byte] of changes) body[at % body.length] = byte;
    return body;
  });
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 300 }), changed), (body) => {
      try {
        const json = JSON.stringify(decodeMatchmakingEvent(body));
        assert.ok(json.isWellFormed() && !json.includes("\\u0000"), "PostgreSQL can't store it");
      } catch (error) {
        assert.ok(error instanceof UnreadableMessage, `${error}`);
      }
    }),
    { numRuns: 3_000 },
  );
});
