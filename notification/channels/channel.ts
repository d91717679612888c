// The way out to the user. A send that fails rejects, and is tried again later. The same
// notification may be sent twice (a crash after the send): notification_id is the idempotency key
// by which the receiver removes the duplicate.

export interface Send {
  notification_id: string;
  event_id: string;
  user_id: string;
  type: string;
  payload: Record<string, unknown>;
}

export interface Channel {
  // The signal is aborted at the time limit; what comes after it is too late.
  send(send: Send, signal: AbortSignal): Promise<void>;
}
