import { writeLine } from "@kenri/shared/process/log.ts";
import type { Channel } from "./channel.ts";

// The only channel so far: it writes each notification to the log.
export const logChannel: Channel = {
  send({ notification_id, event_id, user_id, type, payload }) {
    writeLine(`Notification ${notification_id}: ${type}`, {
      notification_id,
      event_id,
      user_id,
      type,
      stock_keeping_unit: payload["stock_keeping_unit"], // if it is about a right
      unit: payload["unit"], // if it is about points
      point_amount: payload["point_amount"],
      mode: payload["mode"], // if it is about a ticket
      ticket_id: payload["ticket_id"],
      match_id: payload["match_id"] ?? undefined, // if it was matched
      peer_user_ids: payload["match_id"] ? payload["peer_user_ids"] : undefined,
      version: payload["version"],
      trace_id: payload["trace_id"],
    });
    return Promise.resolve();
  },
};
