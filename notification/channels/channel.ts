// How a notification reaches its user. A send that fails rejects, and is retried later. After a
// crash the same notification may be sent twice; notification_id is the idempotency key by which
// the receiver removes the duplicate.

export interface Send {
  notification_id: string;
  event_id: string;
  user_id: string;
  type: string;
  payload: Record<string, unknown>;
}

export interface Channel {
  // The signal is aborted at the time limit; the send then counts as failed.
  send(send: Send, signal: AbortSignal): Promise<void>;
}
