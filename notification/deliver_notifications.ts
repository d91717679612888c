import type { Database } from "@kenri/shared/postgres/postgres.ts";
import { reasonOf } from "@kenri/shared/process/reason.ts";
import type { Outcome } from "@kenri/shared/queue/job.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import type { WorkerOptions } from "@kenri/shared/queue/worker_settings.ts";
import type { Handover } from "@kenri/shared/queue/handover.ts";
import { Worker } from "@kenri/shared/queue/worker.ts";
import type { Channel, Send } from "./channels/channel.ts";
import { type NotificationRow, notifications, type Sent } from "./deliveries.ts";
import { observeDelivered } from "./metrics.ts";
import { TimeLimit } from "./time_limit.ts";

export interface DeliveryOptions extends WorkerOptions {
  worker: string;
  sendTimeoutMs: number;
}

export interface DeliveryParts {
  database: Database;
  channel: Channel;
  toDelivery: Handover<NotificationRow>;
  log: Log;
  abandon: AbortSignal;
}

export async function deliverNotifications(
  { database, channel, toDelivery, log, abandon }: DeliveryParts,
  options: DeliveryOptions,
  stop: AbortSignal,
): Promise<void> {
  const limit = new TimeLimit(options.sendTimeoutMs);
  const worker = new Worker<NotificationRow, Sent>(
    {
      name: "delivery",
      ...options,
      ...notifications.jobOn(database, options, observeDelivered),
      work: ({ id, content: { event_id, user_id, type, payload } }) => {
        const send = { notification_id: id, event_id, user_id, type, payload };
        return sendInTime(channel, send, limit);
      },
      stepOf: () => ({ name: "send", kind: "client" }),
      traceparentOf: ({ content }) => content.traceparent,
      about: ({ content: { event_id, payload } }) => ({ event_id, trace_id: payload["trace_id"] }),
    },
    log,
    abandon,
  );
  await worker.run(toDelivery, stop);
}

async function sendInTime(
  channel: Channel,
  send: Send,
  limit: TimeLimit,
): Promise<Outcome<Sent>> {
  const { signal, isOver, end } = limit.begin();
  try {
    await Promise.race([channel.send(send, signal), isOver]);
    return { kind: "done", result: { sentAt: performance.now() } };
  } catch (error) {
    return { kind: "retry", error: reasonOf(error) };
  } finally {
    end();
  }
}
