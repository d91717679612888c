import type { NatsLink } from "../nats/link.ts";
import type { WantedStream } from "../nats/streams.ts";
import { watermarkLagMs, watermarkSubject } from "../nats/watermark_subject.ts";
import { type Database, query } from "../postgres/postgres.ts";
import { sql } from "../postgres/sql.ts";
import type { Log } from "../process/log.ts";
import { reasonOf } from "../process/reason.ts";
import { pause } from "../process/signals.ts";
import type { OutboxTable } from "./outbox_table.ts";
import type { Compared } from "./relay.ts";

// A watermark says that the stream has every event that was committed up to a moment ago. It is a
// message without content, once a second. A service that decides by the events it has received knows
// by it how current these are: when events wait because NATS, the relay or its process failed, there is
// no watermark.

const intervalMs = 1_000;

export interface WatermarkParts {
  database: Database;
  outbox: OutboxTable;
  link: NatsLink;
  compared: Compared; // by the relay of this process
  log: Log;
}

export async function publishWatermarks(
  { database, outbox, link, compared, log }: WatermarkParts,
  { subjects }: WantedStream,
  stop: AbortSignal,
): Promise<void> {
  let failing = false;
  while (!stop.aborted) {
    await pause(intervalMs, stop);
    const session = link.current;
    // A new stream may lack what is marked as published, until the relay has noticed.
    if (stop.aborted || !session || compared.session !== session) continue;
    try {
      const askedAt = performance.now();
      const isCurrentThen = await isCurrent(database, outbox);
      // An answer that waited, such as while this process stood still, says nothing about now.
      if (isCurrentThen && performance.now() - askedAt < watermarkLagMs) {
        for (const subject of subjects) session.connection.publish(watermarkSubject(subject));
      }
      failing = false;
    } catch (error) {
      if (!failing) log.warn("No watermark is published: {reason}", { reason: reasonOf(error) });
      failing = true;
    }
  }
}

// An event that failed for good was not published either.
async function isCurrent(database: Database, outbox: OutboxTable): Promise<boolean> {
  const late = sql`created_at < now() - make_interval(secs => ${watermarkLagMs / 1_000})`;
  const [row] = await query<{ current: boolean }>(
    database,
    sql`
    select not exists (
        select
        from ${outbox.table}
        where unfinished
          and ${late}
      ) and not exists (
        select
        from ${outbox.table}
        where not unfinished
          and published_at is null
      ) as current`,
  );
  return row?.current ?? false;
}
