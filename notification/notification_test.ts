import { create, toBinary } from "@bufbuild/protobuf";
import { EntitlementEventSchema } from "@kenri/proto/gen/entitlement/v1/entitlement_event_pb.ts";
import assert from "node:assert/strict";
import { encodeMatchmakingEvent } from "@kenri/proto/matchmaking/encode.ts";
import { readMatchmakingNotification, readNotification } from "./notification.ts";

Deno.test("a notification has the user, key and version of its event, and all its fields", () => {
  const event_id = "01a1eece-e608-7de8-b25d-e13b858611ce";
  const occurred_at = "1970-01-01T00:00:00.000000Z";
  const body = toBinary(
    EntitlementEventSchema,
    create(EntitlementEventSchema, {
      eventId: event_id,
      eventType: 1,
      occurredAt: { seconds: 0n, nanos: 0 },
      userId: "tenant:ann",
      stockKeepingUnit: "book",
      source: "purchase",
      sourceId: "p-1",
      version: 7n,
      traceId: "order-17",
    }),
  );
  assert.deepEqual(readNotification(body), {
    ...{ event_id, user_id: "tenant:ann", aggregate_key: "tenant%3Aann:book", version: 7 },
    ...{ type: "EntitlementGranted", occurred_at },
    payload: {
      ...{ event_id, event_type: "EntitlementGranted", occurred_at },
      ...{ user_id: "tenant:ann", stock_keeping_unit: "book", version: 7 },
      ...{ source: "purchase", source_id: "p-1", trace_id: "order-17" },
    },
  });
});

Deno.test("a notification of a ticket has a key of its own, and is its only version", () => {
  const event_id = "c9e7fa4b-a46a-57ed-9a2c-cd5de04ad795";
  const occurred_at = "1970-01-01T00:00:00.000000Z";
  const payload = {
    ...{ event_id, event_type: "TicketExpired", occurred_at, match_id: null, mode: "rank" },
    ...{ trace_id: "", user_id: "a:b", ticket_id: "rank-7", peer_user_ids: [], waited_ms: 60_000 },
  };
  assert.deepEqual(readMatchmakingNotification(encodeMatchmakingEvent(event_id, payload)), {
    ...{ event_id, user_id: "a:b", aggregate_key: "matchmaking:a%3Ab:rank-7", version: 1 },
    ...{ type: "TicketExpired", occurred_at, payload },
  });
});
