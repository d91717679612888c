// The process of a library: it reads commands as lines of JSON, answers each with a line, and ends when
// its starter does. One such process works, another one fills the tables.
import type pg from "pg";
import { linesOf } from "../../issuer/lines.ts";
import { withClient } from "../../servers/asking.ts";
import type { Answer, Command, Name, Task } from "../contender.ts";
import { graphileWorker } from "./graphile_worker.ts";
import type { Event, Library } from "./library.ts";
import { loop } from "./loop.ts";
import { pgBoss } from "./pg_boss.ts";
import { pgTransactionalOutbox } from "./pg_transactional_outbox.ts";
import { openPublishing } from "./publish.ts";

const libraries: Record<Name, Library> = {
  "graphile-worker": graphileWorker,
  "pg-boss": pgBoss,
  "pg-transactional-outbox": pgTransactionalOutbox,
  "loop with js.publish": loop,
  "loop with lean publisher": loop,
};

let stop: (() => Promise<unknown>) | undefined;
console.log = console.info = console.error; // notices must not be among the answers
for await (const line of linesOf(Deno.stdin.readable)) {
  const answer: Answer = {};
  try {
    await obey(JSON.parse(line));
  } catch (error) {
    answer.error = error instanceof Error ? error.stack ?? error.message : String(error);
  }
  await Deno.stdout.write(new TextEncoder().encode(`${JSON.stringify(answer)}\n`));
}
Deno.exit(0);

async function obey(command: Command): Promise<unknown> {
  switch (command.do) {
    case "install":
      return await libraries[command.task.name].install(command.task);
    case "fill":
      return await fill(command.task, command.sourceUrl);
    case "start":
      stop = await start(command.task);
      return;
    case "stop":
      return await stop?.();
  }
}

async function start(task: Task): Promise<() => Promise<unknown>> {
  const isLean = task.name === "loop with lean publisher";
  const publishing = await openPublishing(task.natsUrl, task.subject, isLean);
  const stop = await libraries[task.name].start(task, publishing.publish);
  return async () => {
    await stop();
    await publishing.close();
  };
}

async function fill(task: Task, sourceUrl: string): Promise<void> {
  const events = await withClient(sourceUrl, readEvents);
  const library = libraries[task.name];
  await withClient(task.databaseUrl, async (client) => {
    await client.query("begin");
    await client.query(`truncate ${library.tables}`);
    await library.fill(client, events, task);
    await client.query(`analyze ${library.tables}`);
    await client.query("commit");
  });
}

async function readEvents(client: pg.Client): Promise<Event[]> {
  const { rows } = await client.query<Event>(`
    select row_number() over (order by created_at)::int as number, event_id as id,
      aggregate_key as key, json_build_object(
        'event_type', event_type, 'payload', payload, 'traceparent', traceparent) as content
    from outbox_events order by created_at`);
  return rows;
}
