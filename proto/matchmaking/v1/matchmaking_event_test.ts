import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import assert from "node:assert/strict";
import {
  MatchmakingEventSchema,
  MatchmakingEventType,
} from "../../gen/matchmaking/v1/matchmaking_event_pb.ts";

const event = create(MatchmakingEventSchema, {
  eventId: "e1",
  eventType: MatchmakingEventType.TICKET_EXPIRED,
  occurredAt: { seconds: 1_767_225_600n, nanos: 123_000_000 }, // 2026-01-01T00:00:00.123Z
  matchId: "m1",
  mode: "rank",
  traceId: "trace",
  userId: "user-1",
  ticketId: "rank-1",
  peerUserIds: ["bob", "cyd"],
  waitedMs: 300n,
});

// One line per field: tag, length, value. Written by hand from the encoding's specification, so
// that a new library or a new generator can't quietly move the wire format.
const wire = [
  "0a02" + "6531",
  "1002",
  "1a0b" + "0880f2d6ca06" + "10c0a9d33a",
  "2202" + "6d31",
  "2a04" + "72616e6b",
  "3205" + "7472616365",
  "3a06" + "757365722d31",
  "4206" + "72616e6b2d31",
  "4a03" + "626f62",
  "4a03" + "637964",
  "50" + "ac02",
].join("");

Deno.test("an event of matchmaking has the bytes it always had, and they give it back", () => {
  assert.equal(toBinary(MatchmakingEventSchema, event).toHex(), wire);
  assert.deepEqual(fromBinary(MatchmakingEventSchema, Uint8Array.fromHex(wire)), event);
});

Deno.test("the types of events of matchmaking keep their numbers", () => {
  assert.deepEqual(MatchmakingEventType, {
    UNSPECIFIED: 0,
    MATCH_FOUND: 1,
    TICKET_EXPIRED: 2,
    TICKET_INVALID: 3,
  });
});

Deno.test("a type and a field of a newer schema survive being read and written again", () => {
  const newer = "1063" + "f20601" + "78"; // type 99, and field 110, the string "x"
  const decoded = fromBinary(MatchmakingEventSchema, Uint8Array.fromHex(newer));
  assert.equal(decoded.eventType, 99);
  assert.equal(toBinary(MatchmakingEventSchema, decoded).toHex(), newer);
});
