import type { SendReason } from "@kenri/proto/send.ts";

// Why an order was not sent, or not yet. Each reason says whether the attempt counts, what the ledger
// keeps as the status if the order ends with it, and whether it says that the endpoint can't be
// reached.

export type Reason =
  | SendReason
  | "SERVER_ERROR"
  | "REFUSED"
  | "REDIRECTED"
  | "THROTTLED"
  | "GONE"
  | "UNREADABLE_REQUEST"
  | "EXPIRED"
  | "IDEMPOTENCY_CONFLICT"
  | "ENDPOINT_DELETED"
  | "KEPT_TOO_LONG"
  | "USER_ERASED"
  | "INTERNAL_ERROR";

interface Meaning {
  then: "retry" | "later" | "end";
  ledgerStatus: number | undefined; // undefined: as received
  unreachable: boolean;
}

const retried = (ledgerStatus: number | undefined, unreachable: boolean): Meaning => ({
  then: "retry",
  ledgerStatus,
  unreachable,
});
const ends = (ledgerStatus: number): Meaning => ({ then: "end", ledgerStatus, unreachable: false });

export const reasons: Readonly<Record<Reason, Meaning>> = {
  TIMEOUT: retried(504, true),
  CONNECTION_FAILED: retried(502, true),
  DNS_FAILED: retried(502, true),
  TLS_FAILED: retried(502, true),
  SERVER_ERROR: retried(502, true),
  REFUSED: retried(undefined, false),
  REDIRECTED: retried(502, false),
  INTERNAL_ERROR: retried(500, false),
  THROTTLED: { then: "later", ledgerStatus: 429, unreachable: false },
  ADDRESS_BLOCKED: ends(403),
  GONE: ends(410),
  UNREADABLE_REQUEST: ends(400),
  EXPIRED: ends(408),
  IDEMPOTENCY_CONFLICT: ends(409),
  ENDPOINT_DELETED: ends(410),
  KEPT_TOO_LONG: ends(408),
  USER_ERASED: ends(410),
};

export function reasonOfStatus(status: number): Reason | undefined {
  if (status >= 200 && status < 300) return undefined;
  if (status === 429) return "THROTTLED";
  if (status === 410) return "GONE";
  if (status >= 300 && status < 400) return "REDIRECTED";
  return status >= 500 ? "SERVER_ERROR" : "REFUSED";
}
