import type { ChainsAnswer, ChainsQuery } from "@kenri/entitlement/audit/verify.ts";
import type { RowsAnswer, RowsQuery } from "@kenri/entitlement/audit/stray_rows.ts";
import type { ReplayAnswer, ReplayBody } from "@kenri/entitlement/operators/replay.ts";
import type { OutboxStatus } from "@kenri/entitlement/operators/status.ts";
import type { StoredAnswer } from "@kenri/entitlement/operators/timeline.ts";
import type {
  ReconcileAnswer,
  ReconcileBody,
  Reconciliation,
} from "@kenri/entitlement/reconciliation/on_demand.ts";
import type { DeliveryStatus } from "@kenri/notification/operators/status.ts";
import type {
  DeadLetterCounts,
  DeadLetterPage,
  DeadLettersQuery,
} from "@kenri/shared/operators/dead_letters.ts";
import type { ErasureAnswer, ErasureBody } from "@kenri/shared/operators/erasure.ts";
import type { OperationPage, OperationsQuery } from "@kenri/shared/operators/operation_log.ts";
import type { SendBackAnswer, SendBackBody } from "@kenri/shared/operators/send_back.ts";
import type { Timeline } from "@kenri/shared/operators/timeline.ts";

// The routes that ops calls. Each service declares zod schemas of what its routes take and answer,
// and these are the types of those schemas. Only types are imported, so ops loads no code of a
// service.

export type ServiceName = "entitlement" | "notification";

interface Route<Fields, Answer> {
  fields: Fields; // of the query or the body
  answer: Answer;
}

type NoFields = Record<never, never>;

type RoutesOf<Name extends ServiceName> =
  & Record<`/debug/${Name}/dead-letters`, Route<DeadLettersQuery, DeadLetterPage>>
  & Record<`/debug/${Name}/dead-letters/errors`, Route<NoFields, DeadLetterCounts>>
  & Record<`/debug/${Name}/operations`, Route<OperationsQuery, OperationPage>>
  & Record<`/operations/${Name}/dead-letters/send-back`, Route<SendBackBody, SendBackAnswer>>
  & Record<`/operations/${Name}/erase-user`, Route<ErasureBody, ErasureAnswer>>;

export interface Routes extends RoutesOf<ServiceName> {
  "/debug/entitlement/audit/chains": Route<ChainsQuery, ChainsAnswer>;
  "/debug/entitlement/audit/rows": Route<RowsQuery, RowsAnswer>;
  "/debug/entitlement/reconciliation": Route<NoFields, Reconciliation>;
  "/debug/entitlement/status": Route<NoFields, OutboxStatus>;
  "/debug/entitlement/timeline": Route<
    { event_id: string } | { user_id: string } | { idempotency_key: string },
    Timeline & { key?: StoredAnswer }
  >;
  "/debug/notification/status": Route<NoFields, DeliveryStatus>;
  "/debug/notification/timeline": Route<{ event_id: string } | { user_id: string }, Timeline>;
  "/operations/entitlement/reconcile": Route<ReconcileBody, ReconcileAnswer>;
  "/operations/entitlement/replay": Route<ReplayBody, ReplayAnswer>;
}

export type Path = keyof Routes;
export type Fields<Of extends Path> = Routes[Of]["fields"];
export type Answer<Of extends Path> = Routes[Of]["answer"];

/** The routes whose answers come in pages. */
export type PagedPath = {
  [Of in Path]: "next_cursor" extends keyof Answer<Of> ? Of : never;
}[Path];
