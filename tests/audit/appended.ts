// A change as the service passes it to the function of the owner of the database.

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
