import type { Mutant } from "./mutant.ts";

const api = ["tests/changes/api_test.ts"];
const together = ["tests/changes/changes_together_test.ts"];
const looks = ["tests/operators/operator_looks_test.ts"];
const sendBack = ["tests/operators/send_back_test.ts"];
const retention = ["tests/database/retention_test.ts"];
const timeline = ["tests/operators/timeline_test.ts"];

// Not listed, because nothing would change:
// - republish.ts without `next_retry_at = null`: each claim has set it to null already.
// - store_changes.ts without `where stored.expires_at <= now()`: under the lock of its key no valid
//   answer can be there; the condition guards against a lock that failed.
export const mutants: Mutant[] = [
  {
    file: "entitlement/list_entitlements.ts",
    property: "of many lists that are requested at once, each user gets their own",
    replace: "order by position",
    by: "order by user_id",
    tests: together,
  },
  {
    file: "entitlement/list_entitlements.ts",
    property: "a list shows the newest change first",
    replace: "order by updated_at desc, stock_keeping_unit",
    by: "order by updated_at, stock_keeping_unit",
    tests: api,
  },
  {
    file: "entitlement/list_entitlements.ts",
    property: "entitlements that changed at the same moment are listed by their names",
    replace: "order by updated_at desc, stock_keeping_unit",
    by: "order by updated_at desc, stock_keeping_unit desc",
    tests: together,
  },
  {
    file: "entitlement/list_entitlements.ts",
    property: "a list needs the scope of those who read",
    replace: 'scope: "entitlements:read"',
    by: 'scope: "entitlements:write"',
    tests: ["tests/access/access_test.ts"],
  },
  {
    file: "entitlement/commit_changes.ts",
    property: "an answer that is looked for before the locks counts only until it expires",
    replace: "where idem_key = any($1) and expires_at > now()",
    by: "where idem_key = any($1)",
    tests: api,
  },
  {
    file: "entitlement/commit_changes.ts",
    property: "an answer that is looked for under the locks counts only until it expires",
    replace: "on stored.idem_key = wanted.idem_key and stored.expires_at > now()",
    by: "on stored.idem_key = wanted.idem_key",
    tests: api,
  },
  {
    file: "entitlement/commit_changes.ts",
    property:
      "the time of a change is later than that of the change before, whatever the clock says",
    replace: "greatest(clock_timestamp(), entitlement.updated_at + interval '1 microsecond')",
    by: "clock_timestamp()",
    tests: api,
  },
  {
    file: "entitlement/commit_changes.ts",
    property: "no two changes of an entitlement have the same time",
    replace: "entitlement.updated_at + interval '1 microsecond'",
    by: "entitlement.updated_at",
    tests: api,
  },
  {
    file: "entitlement/commit_changes.ts",
    property: "of many changes that are committed together each is decided by its own entitlement",
    replace: `       and entitlement.stock_keeping_unit = wanted.stock_keeping_unit
     order by wanted.position`,
    by: `       and entitlement.stock_keeping_unit = wanted.stock_keeping_unit
     order by wanted.user_id`,
    tests: together,
  },
  {
    file: "entitlement/commit_changes.ts",
    property: "of many first changes each is let in by the room of its own user",
    replace: `     from unnest($1::text[]) with ordinality as wanted (user_id, position)
     order by wanted.position`,
    by: `     from unnest($1::text[]) with ordinality as wanted (user_id, position)
     order by wanted.user_id`,
    tests: together,
  },
  {
    file: "entitlement/change_locks.ts",
    property: "locks are taken in one order by everyone",
    replace: "numbers.sort((a, b) => a < b ? -1 : a > b ? 1 : 0)",
    by: "numbers.sort((a, b) => a < b ? 1 : a > b ? -1 : 0)",
    tests: together,
  },
  {
    file: "entitlement/change_locks.ts",
    property: "of requests with one key at the same time one is a change",
    replace: "      request.storedKey,\n",
    by: "",
    tests: together,
  },
  {
    file: "entitlement/change_locks.ts",
    property: "an entitlement is changed by one request at a time",
    replace: "      entitlementLock(request),\n",
    by: "",
    tests: together,
  },
  {
    file: "entitlement/change_locks.ts",
    property: "the entitlements of a user are counted by one request at a time",
    replace: "...(counted ? [userLock(request)] : []),",
    by: "...(counted ? [] : []),",
    tests: ["tests/changes/max_per_user_test.ts"],
  },
  {
    file: "entitlement/commit_changes.ts",
    property: "the reason belongs to what a key stands for",
    replace: "JSON.stringify([action, userId, stockKeepingUnit, reason, purchaseId])",
    by: "JSON.stringify([action, userId, stockKeepingUnit, reason && purchaseId])",
    tests: api,
  },
  {
    file: "entitlement/commit_changes.ts",
    property: "a user may have as many entitlements as allowed, and not one more",
    replace: "limit $2) as counted) < $2 as has_capacity",
    by: "limit $2) as counted) <= $2 as has_capacity",
    tests: ["tests/changes/max_per_user_test.ts"],
  },
  {
    file: "entitlement/decide_change.ts",
    property: "at the limit what a user has can still be changed",
    replace: "if (!current && !hasCapacity)",
    by: "if (!hasCapacity)",
    tests: ["tests/changes/max_per_user_test.ts"],
  },
  {
    file: "entitlement/decide_change.ts",
    property: "a key belongs to the request that used it first",
    replace: "if (stored.stored_hash !== hash) return undefined;",
    by: "if (stored.stored_hash === hash && hash === '') return undefined;",
    tests: api,
  },
  {
    file: "entitlement/decide_change.ts",
    property: "a refusal is stored under its key",
    replace: "return { answer, refusal: { request, answer, at } };",
    by: "return { answer, ...(at === '' ? { refusal: { request, answer, at } } : {}) };",
    tests: api,
  },
  {
    file: "entitlement/entitlement.ts",
    property: "the first change has version 1",
    replace: "version: (current?.version ?? 0) + 1",
    by: "version: (current?.version ?? 1) + 1",
    tests: api,
  },
  {
    file: "entitlement/entitlement.ts",
    property: "keys are a caller's own",
    replace: 'caller === "" ? idempotencyKey : `${caller} ${idempotencyKey}`',
    by: 'caller === "" ? idempotencyKey : idempotencyKey',
    tests: ["tests/changes/callers_test.ts"],
  },
  {
    file: "migrations/entitlement/0008_appended_audit.sql",
    property: "a change keeps when its entitlement was granted last",
    replace: "granted_at = coalesce(excluded.granted_at, entitlement.granted_at)",
    by: "granted_at = coalesce(excluded.granted_at, excluded.updated_at)",
    tests: together,
  },
  {
    file: "migrations/entitlement/0008_appended_audit.sql",
    property: "a change keeps when its entitlement was revoked last",
    replace: "revoked_at = coalesce(excluded.revoked_at, entitlement.revoked_at)",
    by: "revoked_at = excluded.revoked_at",
    tests: together,
  },
  {
    file: "entitlement/store_changes.ts",
    property: "an answer is kept for as long as the setting says",
    replace: "now() + make_interval(secs => $2::float8 / 1000)",
    by: "now() + make_interval(secs => $2::float8 / 100)",
    tests: api,
  },
  {
    file: "entitlement/change_entitlement.ts",
    property: "an answer that was stored is marked as replayed",
    replace: 'answer.outcome === "replayed" ? { "Idempotency-Replayed"',
    by: 'answer.outcome !== "applied" ? { "Idempotency-Replayed"',
    tests: api,
  },
  {
    file: "entitlement/change_entitlement.ts",
    property: "a key has at most 255 characters",
    replace: "if (!/^[\\x21-\\x7e]{1,255}$/.test(given))",
    by: "if (!/^[\\x21-\\x7e]{1,256}$/.test(given))",
    tests: ["tests/http/hostile_input_test.ts"],
  },
  {
    file: "entitlement/change_entitlement.ts",
    property: "a request that was wrong is not counted as a failure of the service",
    replace: 'status < 500 ? "invalid"',
    by: 'status < 400 ? "invalid"',
    tests: ["tests/telemetry/metrics_test.ts"],
  },
  {
    file: "entitlement/trace.ts",
    property: "X-Trace-Id goes before the trace id of traceparent",
    replace: "visible.test(named) ? named : parentId ?? randomHex(16)",
    by: "parentId ?? (visible.test(named) ? named : randomHex(16))",
    tests: ["entitlement/trace_test.ts"],
  },
  {
    file: "entitlement/trace.ts",
    property: "a traceparent is made only of a trace id that may stand in one",
    replace: "w3cTraceparent.test(made) ? made : null",
    by: "w3cTraceparent.test(made) ? made : made",
    tests: ["entitlement/trace_test.ts"],
  },
  {
    file: "proto/entitlement/encode.ts",
    property: "the time of an event has the microseconds that PostgreSQL wrote",
    replace: 'fraction.padEnd(9, "0")',
    by: 'fraction.padStart(9, "0")',
    tests: ["proto/entitlement/encode_test.ts"],
  },
  {
    file: "proto/entitlement/encode.ts",
    property: "an event without a version above 0 can't be published",
    replace: "(value as number) < 1",
    by: "(value as number) < 0",
    tests: ["proto/entitlement/encode_test.ts"],
  },
  {
    file: "entitlement/event.ts",
    property: "a message tells the trace in its headers",
    replace: 'trace_id: `${fields["trace_id"]}`',
    by: 'trace_id: `${fields["event_id"]}`',
    tests: ["entitlement/event_test.ts"],
  },
  {
    file: "entitlement/event.ts",
    property: "a message carries the span of its change",
    replace: "...(traceparent ? { traceparent } : {})",
    by: "...(traceparent ? {} : {})",
    tests: ["entitlement/event_test.ts"],
  },
  {
    file: "entitlement/outbox.ts",
    property: "a relay that lost its lease settles nothing",
    replace: `       where row.event_id = acked.id
         and row.claim_token = acked.token`,
    by: `       where row.event_id = acked.id
         and acked.token is not null`,
    tests: ["tests/relay/relay_lease_test.ts"],
  },
  {
    file: "entitlement/outbox.ts",
    property: "published_at is the time of the acknowledgement",
    replace: "published_at = row.locked_at + make_interval(secs => acked.after_ms / 1000)",
    by: "published_at = now() + make_interval(secs => 0 * acked.after_ms)",
    tests: ["tests/relay/relay_database_test.ts"],
  },
  {
    file: "entitlement/outbox.ts",
    property: "events of a key are claimed in the order of their changes",
    replace: 'claimOrder: "created_at"',
    by: 'claimOrder: "event_id"',
    tests: ["tests/changes/plans_test.ts"],
  },
  {
    file: "entitlement/operators/dead_events.ts",
    property: "only what was given up is a dead letter",
    replace: 'isDead: "not unfinished and published_at is null"',
    by: 'isDead: "not unfinished"',
    tests: sendBack,
  },
  {
    file: "entitlement/republish/republish_dead.ts",
    property: "only what is FAILED at that moment is sent back",
    replace: `         and status = 'FAILED'
`,
    by: "",
    tests: sendBack,
  },
  {
    file: "entitlement/republish/republish_dead.ts",
    property: "two who send back at the same time do it once",
    replace: `       order by event_id
       for update
`,
    by: "",
    tests: sendBack,
  },
  {
    file: "entitlement/republish/republish.ts",
    property: "what is sent back has all its attempts again",
    replace: "status = 'PENDING', attempt_count = 0, next_retry_at = null",
    by: "status = 'PENDING', next_retry_at = null",
    tests: sendBack,
  },
  {
    file: "entitlement/operators/timeline.ts",
    property: "the events of a user are shown the newest first",
    replace: `     order by created_at desc
     limit $2`,
    by: `     order by created_at
     limit $2`,
    tests: timeline,
  },
  {
    file: "entitlement/operators/timeline.ts",
    property: "of a user with many entitlements the latest are shown",
    replace: `       order by updated_at desc
       limit $2`,
    by: `       order by updated_at
       limit $2`,
    tests: looks,
  },
  {
    file: "entitlement/operators/timeline.ts",
    property: "what waits is shown besides the last event of each entitlement",
    replace: 'on ${isUnfinishedByKey("row")}\n',
    by: 'on ${isUnfinishedByKey("row")} and row.attempt_count > 0\n',
    tests: looks,
  },
  {
    file: "entitlement/operators/event_timelines.ts",
    property: "an event of the audit is found though the clocks of service and database differ",
    replace: "const clocksDifferMs = 5_000;",
    by: "const clocksDifferMs = 0;",
    tests: timeline,
  },
  {
    file: "entitlement/retention.ts",
    property: "only what was published is deleted from the outbox",
    replace: "condition: `status = 'PUBLISHED'",
    by: "condition: `status <> 'PENDING'",
    tests: retention,
  },
  {
    file: "entitlement/retention.ts",
    property: "an event is kept for as long as the setting says",
    replace: "published_at <= now() - make_interval(secs => $2::float8 / 1000)",
    by: "published_at <= now() - make_interval(secs => $2::float8 / 10000)",
    tests: retention,
  },
  {
    file: "entitlement/retention.ts",
    property: "a key goes when it has expired, and not before",
    replace: "condition: `expires_at <= now()",
    by: "condition: `created_at <= now()",
    tests: retention,
  },
  {
    file: "entitlement/retention.ts",
    property: "partitions are made ahead of time",
    replace: "const monthsAhead = 3;",
    by: "const monthsAhead = 0;",
    tests: retention,
  },
  {
    file: "entitlement/retention.ts",
    property: "it is said when the owner keeps the audit for longer, and not else",
    replace: "where keep_months > $1",
    by: "where keep_months >= $1",
    tests: retention,
  },
  {
    file: "entitlement/backlog.ts",
    property: "what was given up is counted apart from what was published",
    replace: "from outbox_events where not unfinished and published_at is null",
    by: "from outbox_events where not unfinished",
    tests: ["tests/telemetry/metrics_test.ts"],
  },
  {
    file: "entitlement/metrics.ts",
    property: "a change over the limit of its user is counted as refused",
    replace: 'if (result === "over_limit") countRefusal("entitlements_per_user");',
    by: 'if (result === "state_conflict") countRefusal("entitlements_per_user");',
    tests: ["tests/changes/max_per_user_test.ts"],
  },
  {
    file: "entitlement/backlog.ts",
    property: "the status tells when an event was published last",
    replace: "order by outbox_events.published_at desc",
    by: "order by outbox_events.published_at",
    tests: looks,
  },
  {
    file: "entitlement/config.ts",
    property: "what may still be swallowed by the duplicate window is not published again",
    replace: 'Math.ceil(settings["entitlement.nats.duplicate-window"] / 1_000) + 60',
    by: 'Math.ceil(settings["entitlement.nats.duplicate-window"] / 1_000) - 60',
    tests: ["entitlement/config_test.ts"],
  },
  {
    file: "entitlement/app.ts",
    property: "a database that is away is not asked once for each change",
    replace: "mayBeOneItem: (error) => !isUnavailable(error)",
    by: "mayBeOneItem: (error) => isUnavailable(error)",
    tests: ["tests/changes/changes_concurrency_test.ts"],
  },
  {
    file: "entitlement/operators/erase_user.ts",
    property: "nobody is erased whose event is being sent back",
    replace: "await lockFinished(tx, erasure.userId);",
    by: "if (erasure.dryRun) await lockFinished(tx, erasure.userId);",
    tests: ["tests/operators/erase_race_test.ts"],
  },
  {
    file: "entitlement/main.ts",
    property: "without a relay a replica needs no NATS to be ready",
    replace: "needsNats: outbox.enabled,",
    by: "needsNats: true,",
    tests: ["tests/changes/unavailable_test.ts"],
  },
  {
    file: "entitlement/main.ts",
    property: "without the debug setting operators see and change nothing",
    replace: "operators: config.debug ? operators : undefined",
    by: "operators",
    tests: timeline,
  },
];
