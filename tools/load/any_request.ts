// Every request that changes something, as a client asks for it.
import { type ChangeRequest, toHttp as changeToHttp } from "./change_request.ts";
import { command, type HttpRequest } from "./http_request.ts";

export type AnyRequest =
  | ChangeRequest
  | PointsRequest
  | ReserveRequest
  | CancelRequest
  | OrderRequest;

interface Caused {
  key: string;
  user: string;
  reason: string;
  purchase: string;
}

export interface PointsRequest extends Caused {
  action: "POINTS_ADD" | "POINTS_TAKE";
  unit: string;
  amount: number;
}

/** Points or a right for later. */
export interface ReserveRequest extends Caused {
  action: "RESERVE";
  at: number; // in milliseconds since 1970
  what: { unit: string; amount: number } | { change: ChangeRequest["action"]; sku: string };
}

export interface CancelRequest {
  action: "CANCEL";
  key: string; // names it in reports; it is not sent
  user: string;
  reservation: string;
  isOfRight: boolean;
}

/** Of the notification service; all others are of the entitlement service. */
export interface OrderRequest {
  action: "ORDER";
  key: string;
  user: string; // in the payload
  reason: string; // likewise
  url: string;
}

/** What changes a version of something, now. */
export function isChange(request: AnyRequest): request is ChangeRequest | PointsRequest {
  return !["RESERVE", "CANCEL", "ORDER"].includes(request.action);
}

/** What is changed, as the audit names it. */
export function itemOf(request: AnyRequest): string | undefined {
  if (request.action === "CANCEL" || request.action === "ORDER") return undefined;
  const what = request.action === "RESERVE" ? request.what : request;
  return "sku" in what ? what.sku : `points:${what.unit}`;
}

export function toHttp(
  request: AnyRequest,
  headers: Record<string, string> = {},
): Required<HttpRequest> {
  switch (request.action) {
    case "GRANT":
    case "REVOKE":
      return changeToHttp(request, headers);
    case "POINTS_ADD":
    case "POINTS_TAKE": {
      const path = `/v1/points/${request.action === "POINTS_ADD" ? "grants" : "spends"}`;
      const { unit, amount, user, reason, purchase } = request;
      const fields = { user_id: user, unit, point_amount: amount, reason, source_id: purchase };
      return command(path, request.key, fields, headers);
    }
    case "RESERVE":
      return reserveToHttp(request, headers);
    case "CANCEL": {
      const kind = request.isOfRight ? "entitlements" : "points";
      const path = `/v1/${kind}/reservations/${request.reservation}`;
      return { path, init: { method: "DELETE", headers } };
    }
    case "ORDER": {
      const { key, url, user, reason } = request;
      const fields = { adapter: "http", url, payload: { user_id: user, reason } };
      return command("/v1/orders", key, fields, headers);
    }
  }
}

function reserveToHttp(
  { key, user, reason, purchase, at, what }: ReserveRequest,
  headers: Record<string, string>,
): Required<HttpRequest> {
  const common = { user_id: user, reason, execute_at: new Date(at).toISOString() };
  if ("unit" in what) {
    const fields = { unit: what.unit, point_amount: what.amount, source_id: purchase };
    return command("/v1/points/reservations", key, { ...common, ...fields }, headers);
  }
  const fields = { action: what.change, stock_keeping_unit: what.sku, purchase_id: purchase };
  return command("/v1/entitlements/reservations", key, { ...common, ...fields }, headers);
}
