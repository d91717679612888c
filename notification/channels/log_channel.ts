import type { Log } from "@kenri/shared/process/log.ts";
import type { Channel } from "./channel.ts";

// The only channel so far: it writes each notification to the log.
export function logChannel(log: Log): Channel {
  return {
    send({ notification_id, event_id, user_id, type, payload }) {
      log.info("Notification {notification_id}: {type}", {
        notification_id,
        event_id,
        user_id,
        type,
        stock_keeping_unit: payload["stock_keeping_unit"], // if it is about a right
        unit: payload["unit"], // if it is about points
        point_amount: payload["point_amount"],
        version: payload["version"],
        trace_id: payload["trace_id"],
      });
      return Promise.resolve();
    },
  };
}
