// What the channel of the notification service has sent, read from the log.
import assert from "node:assert/strict";
import { aggregateKeyOf } from "../../proto/entitlement/aggregate_key.ts";
import { pointsKeyOf } from "../../proto/points/aggregate_key.ts";
import type { SendRecord } from "../../tools/chaos/invariants/invariants.ts";
import type { LogLine } from "../../tools/servers/service_process.ts";

export interface KeyAndVersion {
  key: string;
  version: number;
}

export interface SendLine extends KeyAndVersion {
  time: number;
}

export function sendsIn(log: LogLine[]): SendLine[] {
  return log.filter(({ message }) => message.startsWith("Notification "))
    .map(({ user_id, stock_keeping_unit, unit, version, time }) => ({
      key: typeof unit === "string"
        ? pointsKeyOf(String(user_id), unit)
        : aggregateKeyOf(String(user_id), String(stock_keeping_unit)),
      version: Number(version),
      time: Date.parse(String(time)),
    }));
}

/**
 * Within a replica the order of the lines counts, across replicas their time. A replica that takes over
 * may repeat a send; then the first one counts.
 */
export function assertInOrder(sendsOfReplicas: SendLine[][], expected: KeyAndVersion[]): void {
  const places = sendsOfReplicas.flatMap((sends, replica) =>
    sends.map((send, line) => ({ ...send, replica, line }))
  );
  const byKey = Map.groupBy(places.toSorted((a, b) => a.time - b.time), ({ key }) => key);
  for (const { key, version } of expected) {
    const sends = byKey.get(key) ?? [];
    const after = sends.find((send) => send.version === version);
    assert.ok(after, `${key} ${version} was not sent`);
    if (version === 1) continue;
    const before = sends.find((send) => send.version === version - 1);
    assert.ok(before, `${key} ${version - 1} was not sent`);
    const inOrder = before.replica === after.replica
      ? before.line < after.line
      : before.time <= after.time;
    assert.ok(inOrder, `${key}: ${version} was sent before ${version - 1}`);
  }
}

/** All sends that the channel has logged, for the invariants. */
export function sendRecordsIn(log: LogLine[]): SendRecord[] {
  return log.filter(({ message }) => message.startsWith("Notification "))
    .map(({ notification_id, event_id }) => ({
      notification_id: String(notification_id),
      event_id: String(event_id),
    }));
}
