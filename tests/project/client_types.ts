// The client depends on nothing, so it has types of its own. They must be the same as the types of
// the service: a difference is a type error in this file.
import type { z } from "zod";
import type {
  ChangedEntitlement,
  EntitlementChange,
  Entitlements,
  ErrorCode,
} from "../../client/client.ts";
import type { changedSchema, changeSchema } from "../../entitlement/change_entitlement.ts";
import type { ErrorCode as ServiceErrorCode } from "../../entitlement/errors.ts";
import type { entitlementsSchema } from "../../entitlement/list_entitlements.ts";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true
  : false;

type True<T extends true> = T;

export type Checked = [
  True<Same<EntitlementChange, z.input<typeof changeSchema>>>,
  True<Same<ChangedEntitlement, z.output<typeof changedSchema>>>,
  True<Same<Entitlements, z.output<typeof entitlementsSchema>>>,
  True<Same<ErrorCode, ServiceErrorCode>>,
];
