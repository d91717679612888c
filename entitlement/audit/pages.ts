// The audit by time, page by page. The time and id of the last row are where the next page begins.

// The rows after a position ($1, $2) and before a time ($3), at most $4 of them.
export const pageOfAudit = `select *
         from entitlement_audit
         where occurred_at >= $1
           and (occurred_at, audit_id) > ($1, $2)
           and occurred_at < $3
         order by occurred_at, audit_id
         limit $4`;
