// Keeps a copy of all entitlements in a SQLite file, from the stream:
//
//   NATS_URL=nats://user:password@127.0.0.1:4222 \
//     deno run -A docs/examples/mirror.ts entitlement-events entitlement.events mirror rights.db
//
// The url comes from the environment, because every user of a machine can see the arguments of programs.
// The program can be killed at any time and run twice at once, and events may arrive twice or in any order.
import { fromBinary } from "@bufbuild/protobuf";
import {
  type EntitlementEvent,
  EntitlementEventSchema,
  EntitlementEventType,
} from "@kenri/proto/gen/entitlement/v1/entitlement_event_pb.ts";
import { AckPolicy, connect, type JsMsg, nanos } from "nats";
import process from "node:process";
import { DatabaseSync } from "node:sqlite";

const [stream = "", subject = "", durable = "", file = ""] = process.argv.slice(2);
const { host, username, password } = new URL(process.env["NATS_URL"] ?? "nats://127.0.0.1:4222");

const database = new DatabaseSync(file, { timeout: 5_000 });
database.exec(`
  create table if not exists rights (
    user_id text,
    stock_keeping_unit text,
    active integer not null,
    version integer not null,
    primary key (user_id, stock_keeping_unit)
  )`);

// Comparing the version is enough: a duplicate, or an event that arrives after a later one, changes nothing.
const keep = database.prepare(`
  insert into rights (user_id, stock_keeping_unit, active, version) values (?, ?, ?, ?)
  on conflict (user_id, stock_keeping_unit) do update
  set active = excluded.active, version = excluded.version
  where rights.version < excluded.version`);

const active = new Map<EntitlementEventType, number>([
  [EntitlementEventType.GRANTED, 1],
  [EntitlementEventType.REVOKED, 0],
]);

function take(message: JsMsg): void {
  const event = readEvent(message.data);
  if (!event) return message.term(); // redelivery would not help
  const isActive = active.get(event.eventType);
  if (isActive !== undefined) {
    keep.run(event.userId, event.stockKeepingUnit, isActive, event.version);
  }
  message.ack(); // after it is stored; an event of an unknown type is skipped
}

function readEvent(body: Uint8Array): EntitlementEvent | undefined {
  try {
    const event = fromBinary(EntitlementEventSchema, body);
    return event.eventId === "" ? undefined : event;
  } catch {
    return undefined;
  }
}

const connection = await connect({
  servers: host,
  // The client reads only the host from a url.
  ...(username ? { user: decodeURIComponent(username), pass: decodeURIComponent(password) } : {}),
});
const manager = await connection.jetstreamManager();
await manager.consumers.add(stream, {
  durable_name: durable,
  filter_subject: subject, // the stream also has events of other types
  ack_policy: AckPolicy.Explicit,
  ack_wait: nanos(5_000), // after that, the messages of a killed process are redelivered
});
const consumer = await connection.jetstream().consumers.get(stream, durable);
for await (const message of await consumer.consume()) take(message);
