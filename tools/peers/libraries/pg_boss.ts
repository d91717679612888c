import { PgBoss } from "pg-boss";
import type { Task } from "../contender.ts";
import type { Event, Library } from "./library.ts";

const queue = "events";
const mostFetched = 1_000;

function bossOf({ databaseUrl }: Task): PgBoss {
  const boss = new PgBoss({
    connectionString: databaseUrl,
    useListenNotify: true, // new jobs are found without a poll
    schedule: false,
  });
  boss.on("error", console.error);
  return boss;
}

export const pgBoss: Library = {
  tables: "pgboss.job",

  async install(task) {
    const boss = await bossOf(task).start();
    const policy = task.isOrdered ? "key_strict_fifo" : "standard";
    await boss.createQueue(queue, { policy, notify: true });
    await boss.stop();
  },

  // pg-boss runs the jobs of one key in the order of their ids if they were added together. A later
  // event has a greater id.
  async fill(client, events, task) {
    const db = {
      executeSql: (text: string, values?: unknown[]) => client.query(text, values),
    };
    const boss = new PgBoss({ db, supervise: false, schedule: false, migrate: false });
    await boss.start();
    await boss.insert(
      queue,
      events.map((event) => ({
        id: event.id,
        data: event,
        ...(task.isOrdered ? { singletonKey: event.key } : {}),
      })),
      { db },
    );
    await boss.stop();
  },

  // It fetches without a pause only while batches are full, and a batch has one job of each key.
  async start(task, publish) {
    const boss = await bossOf(task).start();
    const options = {
      batchSize: task.isOrdered ? Math.min(mostFetched, task.keys) : mostFetched,
      localConcurrency: 2,
      burstWhenBatchFull: true,
      pollingIntervalSeconds: 0.5,
      notifyPollingIntervalSeconds: 0.5,
    };
    await boss.work<Event>(queue, options, async (jobs) => {
      await Promise.all(jobs.map(({ data }) => publish(data)));
    });
    return () => boss.stop();
  },
};
