import type { Mutant } from "./mutant.ts";

const advisories = ["tests/receiving/advisories_test.ts"];
const deadAdvisories = ["tests/receiving/dead_advisories_test.ts"];
const looks = ["tests/operators/operator_looks_test.ts"];
const sendBack = ["tests/operators/send_back_test.ts"];
const delivery = ["tests/delivery/delivery_test.ts"];
const deliveryOrder = ["tests/delivery/delivery_order_test.ts"];
const inbox = ["tests/operators/inbox_test.ts"];
const receiving = ["tests/receiving/receive_statements_test.ts"];
const retention = ["tests/database/notification_retention_test.ts"];
const timeline = ["tests/operators/timeline_test.ts"];
const unit = ["notification/notification_test.ts"];

export const mutants: Mutant[] = [
  {
    file: "proto/entitlement/decode.ts",
    property: "a time is kept to the microsecond",
    replace: "Math.floor(nanos / 1_000)",
    by: "Math.floor(nanos / 1_000_000)",
    tests: unit,
  },
  {
    file: "proto/entitlement/decode.ts",
    property: "the last moment of the year 9999 can be received",
    replace: "seconds > lastSecond",
    by: "seconds >= lastSecond",
    tests: unit,
  },
  {
    file: "proto/entitlement/decode.ts",
    property: "an event_id is the same in small and in capital letters",
    replace: "event.eventId.toLowerCase()",
    by: "event.eventId",
    tests: unit,
  },
  {
    file: "proto/entitlement/decode.ts",
    property: "what can't be stored is refused when it is read",
    replace: 'typeof value === "string" && value.includes("\\0")',
    by: 'typeof value === "string" && value === "\\0"',
    tests: unit,
  },
  {
    file: "proto/entitlement/decode.ts",
    property: "a version that a number can't hold is refused",
    replace: "if (!Number.isSafeInteger(version))",
    by: "if (!Number.isInteger(version))",
    tests: unit,
  },
  {
    file: "proto/entitlement/event_types.ts",
    property: "a type of a newer schema is kept by its number",
    replace: "nameOfType.get(type) ?? `${type}`",
    by: 'nameOfType.get(type) ?? "unknown"',
    tests: unit,
  },
  {
    file: "notification/operators/inbox.ts",
    property: "walking by cursor meets every row once",
    replace: "(notifications.created_at, notification_id) < ($2",
    by: "(notifications.created_at, notification_id) <= ($2",
    tests: inbox,
  },
  {
    file: "notification/operators/inbox.ts",
    property: "an inbox has the newest first",
    replace: "order by notifications.created_at desc, notification_id desc",
    by: "order by notifications.created_at, notification_id",
    tests: inbox,
  },
  {
    file: "notification/operators/inbox.ts",
    property: "of the same time rows come in the order of the cursor",
    replace: "order by notifications.created_at desc, notification_id desc",
    by: "order by notifications.created_at desc, notification_id",
    tests: inbox,
  },
  {
    file: "notification/operators/inbox.ts",
    property: "there is a cursor when there are more",
    replace: "findNotifications(database, user_id, after, limit + 1)",
    by: "findNotifications(database, user_id, after, limit)",
    tests: inbox,
  },
  {
    file: "notification/operators/inbox.ts",
    property: "an inbox needs the scope of those who read notifications",
    replace: 'scope: "notifications:read"',
    by: 'scope: "debug:read"',
    tests: ["tests/access/access_test.ts"],
  },
  {
    file: "notification/receive_events.ts",
    property: "the first version waits for nobody",
    replace: "select received.*, version > 1",
    by: "select received.*, version >= 1",
    tests: receiving,
  },
  {
    file: "notification/receive_events.ts",
    property: "a predecessor that comes in the same batch is not waited for",
    replace:
      "and (aggregate_key, version - 1) not in (select aggregate_key, version from received)",
    by: "and (aggregate_key, version) not in (select aggregate_key, version - 1 from received)",
    tests: receiving,
  },
  {
    file: "notification/receive_events.ts",
    property: "a predecessor that is there already is not waited for",
    replace: "and predecessor.version = received.version - 1)",
    by: "and predecessor.version = received.version - 2)",
    tests: receiving,
  },
  {
    file: "notification/receive_events.ts",
    property: "a predecessor is waited for as long as the setting says",
    replace: "make_interval(secs => $3::float8 / 1000) end",
    by: "make_interval(secs => $3::float8) end",
    tests: receiving,
  },
  {
    file: "notification/receive_events.ts",
    property: "a predecessor that comes ends the wait of the version after it",
    replace: "select aggregate_key, version + 1 from received",
    by: "select aggregate_key, version + 2 from received",
    tests: receiving,
  },
  {
    file: "notification/receive_events.ts",
    property: "neighbours that were stored at the same time end each other's waits",
    replace: `         select aggregate_key, version from received
         union`,
    by: `         select aggregate_key, version + 1 from received
         union`,
    tests: deliveryOrder,
  },
  {
    file: "notification/receive_events.ts",
    property: "only a row that waits for its predecessor is tried at once when that comes",
    replace: `         and waiting.awaits_predecessor
         and exists (`,
    by: `         and exists (`,
    tests: receiving,
  },
  {
    file: "notification/receive_events.ts",
    property: "a wait ends only when its predecessor is there",
    replace: "and predecessor.version = waiting.version - 1)",
    by: "and predecessor.version < waiting.version)",
    tests: receiving,
  },
  {
    file: "notification/receive_events.ts",
    property: "the delivery is told when a wait has ended",
    replace: "othersWait: leased.length < stored.length || ended > 0",
    by: "othersWait: leased.length < stored.length || ended < 0",
    tests: ["tests/relay/handover_test.ts"],
  },
  {
    file: "notification/receive_events.ts",
    property:
      "events of one key that arrive together are handed over in the order of their versions",
    replace: `     from stored
     order by version`,
    by: `     from stored
     order by version desc`,
    tests: ["tests/relay/handover_test.ts"],
  },
  {
    file: "notification/receive_events.ts",
    property: "what comes after one that awaits its predecessor is not leased",
    replace:
      "`aggregate_key not in (select aggregate_key from new_notification where awaits_predecessor)`",
    by: "`not awaits_predecessor`",
    tests: ["tests/relay/handover_test.ts"],
  },
  {
    file: "notification/receive_events.ts",
    property: "rows are locked in one order, as replicas share neighbours",
    replace: `       order by waiting.notification_id
       for update of waiting`,
    by: `       order by waiting.notification_id desc
       for update of waiting`,
    tests: receiving,
  },
  {
    file: "notification/deliveries.ts",
    property: "notifications of a key are sent by their versions",
    replace: 'positionColumn: "version"',
    by: 'positionColumn: "created_at"',
    tests: deliveryOrder,
  },
  {
    file: "notification/deliveries.ts",
    property: "a worker that lost its lease settles nothing",
    replace: `       where row.notification_id = sent.id
         and row.claim_token = sent.token`,
    by: `       where row.notification_id = sent.id
         and sent.token is not null`,
    tests: delivery,
  },
  {
    file: "notification/deliveries.ts",
    property: "sent_at is the time at which the channel took it",
    replace: "sent_at = row.locked_at + make_interval(secs => sent.after_ms / 1000)",
    by: "sent_at = now() + make_interval(secs => 0 * sent.after_ms)",
    tests: receiving,
  },
  {
    file: "notification/deliver_notifications.ts",
    property: "a send that takes too long is given up",
    replace: "    late.reject(error);\n",
    by: "",
    tests: delivery,
  },
  {
    file: "notification/deliver_notifications.ts",
    property: "a channel is told when its send is given up",
    replace: "    limit.abort(error);\n",
    by: "",
    tests: delivery,
  },
  {
    file: "notification/deliver_notifications.ts",
    property: "the time limit of a send ends with it",
    replace: "    clearTimeout(timer);\n",
    by: "    void timer;\n",
    tests: delivery,
  },
  {
    file: "notification/deliveries.ts",
    property: "one that is sent back and fails again keeps its one dead letter",
    replace: "on conflict (notification_id) do nothing",
    by: "on conflict (dlq_id) do nothing",
    tests: delivery,
  },
  {
    file: "notification/retention.ts",
    property: "what was given up long ago is deleted as well",
    replace: "and status in ('SENT', 'FAILED')",
    by: "and status in ('SENT')",
    tests: retention,
  },
  {
    file: "notification/retention.ts",
    property: "what was not finished is kept, however old",
    replace: "\n         and status in ('SENT', 'FAILED')",
    by: "",
    tests: retention,
  },
  {
    file: "notification/retention.ts",
    property: "only what is not finished is overdue",
    replace: `     where unfinished
       and created_at < now()`,
    by: `     where created_at < now()`,
    tests: retention,
  },
  {
    file: "notification/retention.ts",
    property: "an event is remembered for as long as the setting says",
    replace: "processed_at < now() - make_interval(days => $2)",
    by: "processed_at < now() - make_interval(hours => $2)",
    tests: retention,
  },
  {
    file: "notification/dead_letters/capture_advisories.ts",
    property: "what a new stream holds at that sequence is not taken for the old message",
    replace: "message.time <= new Date(advisory.timestamp) ? message : undefined",
    by: "message.time >= new Date(0) ? message : undefined",
    tests: advisories,
  },
  {
    file: "notification/dead_letters/capture_advisories.ts",
    property: "an advisory that comes twice is stored once",
    replace: "on conflict (advisory_id) do nothing",
    by: "on conflict (dlq_id) do nothing",
    tests: advisories,
  },
  {
    file: "notification/dead_letters/capture_advisories.ts",
    property: "an advisory that can't be read is acked",
    replace: "    return message.ack();\n",
    by: "    return;\n",
    tests: advisories,
  },
  {
    file: "notification/dead_letters/capture_advisories.ts",
    property: "an advisory whose message is gone is stored without a copy",
    replace: "if (code === messageNotFound || code === streamNotFound) return undefined;",
    by: "if (code !== messageNotFound && code === streamNotFound) return undefined;",
    tests: advisories,
  },
  {
    file: "notification/dead_letters/capture_advisories.ts",
    property: "an advisory about a stream that is gone is stored without a copy",
    replace: "if (code === messageNotFound || code === streamNotFound) return undefined;",
    by: "if (code === messageNotFound || code === -streamNotFound) return undefined;",
    tests: ["tests/receiving/advisory_streams_test.ts"],
  },
  {
    file: "notification/dead_letters/dead_advisories.ts",
    property: "a captured message that was received is no dead letter any more",
    replace: 'isDead: "operation_id is null"',
    by: 'isDead: "true"',
    tests: deadAdvisories,
  },
  {
    file: "notification/dead_letters/dead_advisories.ts",
    property: "of two who receive a message again one is told that they did",
    replace: `       where dead.dlq_id = done.dlq_id
         and dead.operation_id is null`,
    by: `       where dead.dlq_id = done.dlq_id`,
    tests: sendBack,
  },
  {
    file: "notification/dead_letters/dead_advisories.ts",
    property: "the delivery is told of what was received again",
    replace: "if (done.length > 0) wakeDelivery.trigger();",
    by: "if (done.length < 0) wakeDelivery.trigger();",
    tests: sendBack,
  },
  {
    file: "notification/dead_letters/dead_advisories.ts",
    property: "a message whose copy can't be read is named by its header",
    replace: 'headers?.["Nats-Msg-Id"]?.[0] ?? null',
    by: 'headers?.["Nats-Msg-Id"]?.[1] ?? null',
    tests: deadAdvisories,
  },
  {
    file: "notification/dead_letters/dead_deliveries.ts",
    property: "only what is FAILED at that moment is sent back",
    replace: `         and row.status = 'FAILED'
`,
    by: "",
    tests: sendBack,
  },
  {
    file: "notification/dead_letters/dead_deliveries.ts",
    property: "what is sent back has all its attempts again",
    replace: "set status = 'PENDING', attempt_count = 0, next_retry_at = null, last_error = null",
    by: "set status = 'PENDING', next_retry_at = null, last_error = null",
    tests: sendBack,
  },
  {
    file: "notification/dead_letters/dead_deliveries.ts",
    property: "the delivery is told of what was sent back",
    replace: "if (rows.length > 0) wakeDelivery.trigger();",
    by: "if (rows.length < 0) wakeDelivery.trigger();",
    tests: sendBack,
  },
  {
    file: "notification/dead_letters/dead_deliveries.ts",
    property: "a notification that was deleted comes back with its version",
    replace: "(payload_json->>'version')::bigint, payload_json->>'event_type',",
    by: "1, payload_json->>'event_type',",
    tests: sendBack,
  },
  {
    file: "notification/operators/timeline.ts",
    property: "the events of a user are shown the newest first",
    replace: "order by created_at desc, notification_id desc",
    by: "order by created_at, notification_id",
    tests: looks,
  },
  {
    file: "notification/operators/timeline.ts",
    property: "an event that JetStream gave up is shown though it was never received",
    replace: "if (!row) return losses.length > 0 ? [toTimeline(id, row, losses)] : [];",
    by: "if (!row) return losses.length > 1 ? [toTimeline(id, row, losses)] : [];",
    tests: looks,
  },
  {
    file: "notification/operators/timeline.ts",
    property: "the attempts of a send are steps of its event",
    replace: "[...losses, ...attempts.get(row.notification_id) ?? []]",
    by: "[...losses, ...attempts.get(row.user_id) ?? []]",
    tests: timeline,
  },
  {
    file: "notification/answer_checks.ts",
    property: "what may have been deleted for its age is not said to be missing",
    replace: "now() - make_interval(days => $1) + interval '1 hour'",
    by: "now() - make_interval(days => $1) - interval '1 hour'",
    tests: ["tests/reconciliation/reconcile_test.ts"],
  },
  {
    file: "notification/answer_checks.ts",
    property: "of several replicas one answers",
    replace: "      queue: options.consumer.durable,\n",
    by: "",
    tests: ["tests/reconciliation/receiver_test.ts"],
  },
  {
    file: "notification/operators/erase_user.ts",
    property: "nobody is erased while a notification of theirs is on its way",
    replace: "if (waiting > 0) return { waiting, rows: {} };",
    by: "if (waiting > 1) return { waiting, rows: {} };",
    tests: ["tests/operators/erase_race_test.ts"],
  },
  {
    file: "notification/operators/erase_user.ts",
    property: "nobody is erased whose captured message is being sent back",
    replace: "await refuseWhenReceived(tx, erasure.userId);",
    by: "if (erasure.dryRun) await refuseWhenReceived(tx, erasure.userId);",
    tests: ["tests/operators/erase_race_test.ts"],
  },
  {
    file: "notification/operators/erase_user.ts",
    property: "nobody is erased whose notification is being sent back",
    replace: "await lockDeadLetters(tx, erasure.userId);",
    by: "if (erasure.dryRun) await lockDeadLetters(tx, erasure.userId);",
    tests: ["tests/operators/erase_race_test.ts"],
  },
  {
    file: "notification/operators/erase_user.ts",
    property: "a copy that can't be read is dropped, whichever user is in it",
    replace: "if (key === null) return true;",
    by: "if (key === null) return false;",
    tests: ["tests/relay/aggregate_key_test.ts"],
  },
  {
    file: "notification/operators/erase_user.ts",
    property: "an event whose copy is dropped counts as received",
    replace: "{3}-[0-9a-f]{12}$'\n     on conflict do nothing",
    by: "{4}-[0-9a-f]{12}$'\n     on conflict do nothing",
    tests: ["tests/operators/erase_user_test.ts"],
  },
  {
    file: "notification/stream_settings.ts",
    property: "terminated messages are kept by a stream of their own",
    replace: '["terminated-advisory", "MSG_TERMINATED"]',
    by: '["advisory", "MSG_TERMINATED"]',
    tests: ["notification/config_test.ts"],
  },
  {
    file: "notification/config.ts",
    property: "a prefix without failure injection is refused",
    replace: 'value[injection] !== false || value[injectionPrefix] === ""',
    by: 'value[injection] !== false || value[injectionPrefix] !== ""',
    tests: ["notification/config_test.ts"],
  },
  {
    file: "notification/channels/failure_injection.ts",
    property: "only the sends to chosen users fail",
    replace: "if (!send.user_id.startsWith(userIdPrefix))",
    by: "if (!send.user_id.includes(userIdPrefix))",
    tests: delivery,
  },
  {
    file: "notification/metrics.ts",
    property: "a send that lost its lease is not counted",
    replace: "if (!owned.has(row.id)) continue;",
    by: "if (owned.size === 0) continue;",
    tests: ["notification/metrics_test.ts"],
  },
  {
    file: "notification/backlog.ts",
    property: "a dead letter of the consumer counts until it is received",
    replace: "from notification_nats_dlq where operation_id is null",
    by: "from notification_nats_dlq where true",
    tests: ["tests/telemetry/metrics_test.ts"],
  },
];
