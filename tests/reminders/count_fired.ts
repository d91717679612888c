import { UnreadableMessage } from "@kenri/proto/unreadable.ts";
import type { InboxStreams } from "@kenri/shared/inbox/durables.ts";
import type { Inbox } from "@kenri/shared/inbox/inbox.ts";
import { outcomes } from "@kenri/shared/inbox/intake.ts";
import { storeOnce } from "@kenri/shared/inbox/store_once.ts";
import type { Message } from "@kenri/shared/nats/pull.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { reasonOf } from "@kenri/shared/process/reason.ts";
import { counter, countersBy } from "@kenri/shared/telemetry/metrics.ts";
import { z } from "zod";

const received = counter("reminders_receive_total", "messages received, by outcome", ["outcome"]);

export function firedInbox(database: Database, streams: InboxStreams): Inbox<Fired> {
  return {
    ...streams,
    name: "counting",
    batch: "fired",
    decode,
    store: (events) => storeOnce(database, events, countsReminders),
    counts: countersBy(outcomes, (outcome) => received.labels(outcome)),
  };
}

const fired = z.object({ event_id: z.uuid(), payload: z.object({ user_id: z.string() }) });
type Fired = z.infer<typeof fired>;

function decode({ data }: Message): Fired {
  try {
    return fired.parse(JSON.parse(new TextDecoder().decode(data)));
  } catch (error) {
    throw new UnreadableMessage(reasonOf(error));
  }
}

const countsReminders = sql`insert into fired_reminders as stored (user_id, count)
  select payload->>'user_id', count(*) from new_event group by 1 order by 1
  on conflict (user_id) do update set count = stored.count + excluded.count`;
