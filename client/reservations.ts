import type { Answered, ChangedEntitlement, EntitlementChange } from "./answers.ts";
import { type CallOptions, type PageOptions, query, type Requests } from "./requests.ts";

// Reservations: points that are added, and rights that are granted or revoked, at a given time.

export interface NewPointsReservation {
  user_id: string;
  point_amount: number;
  /** RFC 3339 with an offset, such as that of `new Date(…).toISOString()`. */
  execute_at: string;
  unit?: string | null;
  reason?: string | null;
  source_id?: string | null;
}

export type ReservationStatus = "PENDING" | "PROCESSING" | "DONE" | "FAILED" | "CANCELLED";

/** What every reservation has. */
interface Reservation {
  reservation_id: string;
  user_id: string;
  /** In UTC, with microseconds. */
  execute_at: string;
  status: ReservationStatus;
  created_at: string;
  /** When it was done or cancelled. */
  done_at?: string;
  /** Failed attempts. Present, with the last error, once it is DONE, FAILED or CANCELLED. */
  attempt_count?: number;
  last_error?: string | null;
}

export interface PointsReservation extends Reservation {
  unit: string;
  point_amount: number;
  /** Present once it is DONE. */
  transaction_id?: string;
}

export interface PointsReservations {
  reservations: PointsReservation[];
  /** Present if there are more. */
  next_cursor?: string;
}

export interface NewChangeReservation extends EntitlementChange {
  action: "GRANT" | "REVOKE";
  /** RFC 3339 with an offset, such as that of `new Date(…).toISOString()`. */
  execute_at: string;
}

export interface ChangeReservation extends Reservation {
  action: "GRANT" | "REVOKE";
  stock_keeping_unit: string;
  reason: string;
  purchase_id: string;
  /** The answer to the change once it is DONE: 200, or 409 if the change was refused. */
  outcome?: { status: number; body: ChangedEntitlement | { code: string; message: string } };
}

/** The service's answer to a new reservation, which is `PENDING`. */
export interface Reserved<Kind> extends Answered {
  reservation: Kind;
}

export interface ReservationsClient {
  /**
   * Reserves points, which are added at the given time, once. The key identifies the intent, as that
   * of `grant` does.
   */
  reservePoints(
    key: string,
    reservation: NewPointsReservation,
    options?: CallOptions,
  ): Promise<Reserved<PointsReservation>>;
  findReservation(reservationId: string, options?: CallOptions): Promise<PointsReservation>;
  /**
   * Cancels a reservation that is still `PENDING`, and may be repeated. Otherwise it throws a
   * Conflict `RESERVATION_STATE_CONFLICT`, whose message contains the status.
   */
  cancelReservation(reservationId: string, options?: CallOptions): Promise<PointsReservation>;
  /** A page of the reservations that this caller has made for the user, the soonest first. */
  listReservations(
    userId: string,
    options?: PageOptions & { status?: ReservationStatus },
  ): Promise<PointsReservations>;

  /** Reserves a grant or a revoke of an entitlement, which is made at the given time, once. */
  reserveChange(
    key: string,
    reservation: NewChangeReservation,
    options?: CallOptions,
  ): Promise<Reserved<ChangeReservation>>;
  /** When it is `DONE`, `outcome` is the answer to the change, which may be a refusal. */
  findReservedChange(reservationId: string, options?: CallOptions): Promise<ChangeReservation>;
  /** As `cancelReservation`. */
  cancelReservedChange(reservationId: string, options?: CallOptions): Promise<ChangeReservation>;
}

export function reservationsClient(requests: Requests): ReservationsClient {
  const reserve = async <Kind>(
    path: string,
    key: string,
    fields: object,
    call: CallOptions | undefined,
  ): Promise<Reserved<Kind>> => {
    const { body, ...answered } = await requests.post<Kind>(path, key, fields, call);
    return { reservation: body, ...answered };
  };
  const points = (id: string) => `/v1/points/reservations/${encodeURIComponent(id)}`;
  const change = (id: string) => `/v1/entitlements/reservations/${encodeURIComponent(id)}`;
  return {
    reservePoints: (key, fields, call) => reserve("/v1/points/reservations", key, fields, call),
    findReservation: (id, call) => requests.get(points(id), call),
    cancelReservation: (id, call) => requests.delete(points(id), call),
    listReservations: (userId, { status, limit, cursor, ...call } = {}) => {
      const path = `/v1/users/${encodeURIComponent(userId)}/points/reservations`;
      return requests.get(path + query({ status, limit, cursor }), call);
    },
    reserveChange: (key, fields, call) =>
      reserve("/v1/entitlements/reservations", key, fields, call),
    findReservedChange: (id, call) => requests.get(change(id), call),
    cancelReservedChange: (id, call) => requests.delete(change(id), call),
  };
}
