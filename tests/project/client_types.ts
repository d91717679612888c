// The client depends on nothing, so it has types of its own. They must be the same as the types of
// the service: a difference is a type error in this file.
import type { z } from "zod";
import type { profileSchema } from "../../account/change_profile.ts";
import type { ErrorCode as AccountErrorCode } from "../../account/errors.ts";
import type { auditSchema } from "../../account/list_audit.ts";
import type { userSchema } from "../../account/user.ts";
import type {
  AccountAudit,
  Answered,
  ChangedEntitlement,
  ChangedPoints,
  ChangeReservation,
  CreatedEndpoint,
  EndpointAttempts,
  EndpointChange,
  Endpoints,
  EntitlementChange,
  Entitlements,
  ErrorCode,
  NewChangeReservation,
  NewEndpoint,
  NewPointsReservation,
  Order,
  PointsBalances,
  PointsChange,
  PointsReservation,
  PointsReservations,
  PointsTransactions,
  ProfileChange,
  RotatedSecret,
  User,
} from "../../client/client.ts";
import type { changedSchema, changeSchema } from "../../entitlement/change_entitlement.ts";
import type { ErrorCode as EntitlementErrorCode } from "../../entitlement/errors.ts";
import type { entitlementsSchema } from "../../entitlement/list_entitlements.ts";
import type {
  changedPointsSchema,
  pointsChangeSchema,
} from "../../entitlement/points/change_points.ts";
import type { balancesSchema } from "../../entitlement/points/list_balances.ts";
import type { reservationsSchema } from "../../entitlement/points/list_reservations.ts";
import type { transactionsSchema } from "../../entitlement/points/list_transactions.ts";
import type {
  pointsReservationSchema,
  rightReservationSchema,
} from "../../entitlement/points/reservation.ts";
import type { reservePointsSchema, reserveRightSchema } from "../../entitlement/points/reserve.ts";
import type { changedFieldsSchema } from "../../notification/endpoints/change_endpoint.ts";
import type {
  madeSchema,
  newEndpointSchema,
} from "../../notification/endpoints/create_endpoint.ts";
import type { attemptsSchema } from "../../notification/endpoints/list_attempts.ts";
import type { endpointsSchema } from "../../notification/endpoints/list_endpoints.ts";
import type { rotatedSchema } from "../../notification/endpoints/rotate_secret.ts";
import type { ErrorCode as NotificationErrorCode } from "../../notification/errors.ts";
import type { orderSchema } from "../../notification/orders/order.ts";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true
  : false;

// JSON has no undefined, and the types of zod have it. An interface that extends another one is
// flattened.
type Json<T> = { [Key in keyof T]: Json<Exclude<T[Key], undefined>> };

type SameJson<A, B> = Same<Json<A>, Json<B>>;

type True<T extends true> = T;

export type Checked = [
  True<Same<EntitlementChange, z.input<typeof changeSchema>>>,
  True<Same<ChangedEntitlement, z.output<typeof changedSchema>>>,
  True<Same<Entitlements, z.output<typeof entitlementsSchema>>>,
  True<Same<ErrorCode, EntitlementErrorCode | NotificationErrorCode | AccountErrorCode>>,
  True<SameJson<User, z.output<typeof userSchema>>>,
  True<SameJson<ProfileChange, z.input<typeof profileSchema>>>,
  True<SameJson<AccountAudit, z.output<typeof auditSchema>>>,
  True<SameJson<PointsChange, z.input<typeof pointsChangeSchema>>>,
  True<SameJson<Omit<ChangedPoints, keyof Answered>, z.output<typeof changedPointsSchema>>>,
  True<SameJson<PointsBalances, z.output<typeof balancesSchema>>>,
  True<SameJson<PointsTransactions, z.output<typeof transactionsSchema>>>,
  True<SameJson<NewPointsReservation, z.input<typeof reservePointsSchema>>>,
  True<SameJson<PointsReservation, z.output<typeof pointsReservationSchema>>>,
  True<SameJson<PointsReservations, z.output<typeof reservationsSchema>>>,
  True<SameJson<NewChangeReservation, z.input<typeof reserveRightSchema>>>,
  True<SameJson<ChangeReservation, z.output<typeof rightReservationSchema>>>,
  True<SameJson<Order, z.output<typeof orderSchema>>>,
  True<SameJson<NewEndpoint, z.input<typeof newEndpointSchema>>>,
  True<SameJson<EndpointChange, z.input<typeof changedFieldsSchema>>>,
  True<SameJson<Omit<CreatedEndpoint, keyof Answered>, z.output<typeof madeSchema>>>,
  True<SameJson<Endpoints, z.output<typeof endpointsSchema>>>,
  True<SameJson<Omit<RotatedSecret, keyof Answered>, z.output<typeof rotatedSchema>>>,
  True<SameJson<EndpointAttempts, z.output<typeof attemptsSchema>>>,
];
