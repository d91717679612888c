// What one writes by hand, without order and without a fence.
import type pg from "pg";
import { ask, withClient } from "../../servers/asking.ts";
import type { Event, Library, Publish } from "./library.ts";

const batchSize = 500;
const inFlight = 200;

export const loop: Library = {
  tables: "outbox",

  async install({ databaseUrl }) {
    await ask(
      databaseUrl,
      `create table outbox (number int primary key, event jsonb not null, published_at timestamptz);
       create index on outbox (number) where published_at is null`,
    );
  },

  async fill(client, events) {
    await client.query(
      `insert into outbox (number, event)
       select (event->>'number')::int, event from jsonb_array_elements($1) as event`,
      [JSON.stringify(events)],
    );
  },

  start({ databaseUrl }, publish) {
    const stop = new AbortController();
    const running = withClient(databaseUrl, async (client) => {
      while (!stop.signal.aborted) {
        if (await publishBatch(client, publish) === 0) {
          await new Promise((again) => setTimeout(again, 10));
        }
      }
    });
    return Promise.resolve(() => {
      stop.abort();
      return running;
    });
  },
};

async function publishBatch(client: pg.Client, publish: Publish): Promise<number> {
  await client.query("begin");
  const { rows } = await client.query<{ number: number; event: Event }>({
    name: "claim",
    text: `select number, event from outbox where published_at is null
      order by number limit ${batchSize} for update skip locked`,
  });
  const left = rows.values();
  const work = async () => {
    for (const { event } of left) await publish(event);
  };
  await Promise.all(Array.from({ length: inFlight }, work));
  await client.query({
    name: "settle",
    text: "update outbox set published_at = now() where number = any($1)",
    values: [rows.map(({ number }) => number)],
  });
  await client.query("commit");
  return rows.length;
}
