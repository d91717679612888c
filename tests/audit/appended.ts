// Changes and points as the service passes them to functions of the owner of the database.
import pg from "pg";

export const change = {
  ...{ user_id: "ann", stock_keeping_unit: "book", action: "GRANT", version: 1 },
  ...{ source: "purchase", source_id: "1", request_id: "key", caller: "", trace_id: "trace" },
};

export const append = (
  change: Record<string, unknown>,
  at = "clock_timestamp()",
  id: string = crypto.randomUUID(),
): string =>
  `select append_changes(json_build_array(
     jsonb_build_object('audit_id', '${id}', 'occurred_at', ${at}) || '${
    JSON.stringify(change)
  }'))`;

export const points = {
  ...{ user_id: "ann", unit: "gold", point_amount: 10, balance: 10, version: 1 },
  ...{ source: "quest", source_id: "1", request_id: "key", caller: "", trace_id: "trace" },
};

type Points = Partial<Record<keyof typeof points | "id" | "idempotency_key", unknown>>;

/** Transactions in this order, each a microsecond after the one before it. */
export function appendPoints(transactions: Points[], at = "clock_timestamp()"): string {
  const entries = transactions.map((transaction, i) => {
    const [id, idempotency_key] = [crypto.randomUUID(), crypto.randomUUID()];
    const entry = JSON.stringify({ ...points, id, idempotency_key, ...transaction });
    const later = i === 0 ? at : `${at} + interval '${i} us'`;
    return `jsonb_build_object('created_at', ${later}) || ${pg.escapeLiteral(entry)}`;
  });
  return `select append_points(json_build_array(${entries.join(", ")}))`;
}
