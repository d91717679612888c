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
export function appendPoints(
  transactions: Points[],
  at = "clock_timestamp()",
  step = "1 us",
): string {
  const entries = transactions.map((transaction) => {
    const [id, idempotency_key] = [crypto.randomUUID(), crypto.randomUUID()];
    return { ...points, id, idempotency_key, ...transaction };
  });
  return `with begun as materialized (select ${at} as at)
    select append_points(json_agg(
      entry || jsonb_build_object('created_at', at + (n - 1) * interval '${step}') order by n))
    from begun
    cross join jsonb_array_elements(${pg.escapeLiteral(JSON.stringify(entries))})
      with ordinality as asked (entry, n)`;
}
