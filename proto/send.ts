// What a service asks the sender for, and what it gets: POST /send.

/** One request to the outside, made exactly as it is written here. */
export interface SendRequest {
  method: "POST";
  url: string;
  headers: Record<string, string>;
  body: string;
  timeout_ms: number;
}

/** What the receiver answered. Of the body only the first 4 KiB. */
export interface SendAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Why there is no answer. */
export interface SendFailure {
  reason_code: SendReason;
  message: string; // never contains the body or a header
}

export const sendReasons = [
  "TIMEOUT",
  "CONNECTION_FAILED",
  "DNS_FAILED",
  "TLS_FAILED",
  "ADDRESS_BLOCKED",
] as const;

export type SendReason = typeof sendReasons[number];

export const keptOfBody = 4_096; // bytes
