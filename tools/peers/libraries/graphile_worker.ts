import { Logger, makeWorkerUtils, run } from "graphile-worker";
import type { Event, Library } from "./library.ts";

const silent = new Logger(() => () => {});

const mostFetched = 500;

export const graphileWorker: Library = {
  tables: "graphile_worker._private_jobs, graphile_worker._private_job_queues",

  async install({ databaseUrl }) {
    const utils = await makeWorkerUtils({ connectionString: databaseUrl, logger: silent });
    await utils.migrate();
    await utils.release();
  },

  // The jobs of a named queue run one after the other, by their time. So each event has its own
  // millisecond of the past.
  async fill(client, events, { isOrdered }) {
    const from = Date.now() - events.length;
    const specs = events.map((event, i) => ({
      identifier: "publish",
      payload: event,
      queue_name: isOrdered ? event.key : null,
      run_at: new Date(from + i),
    }));
    await client.query(
      `select graphile_worker.add_jobs(array(
         select json_populate_recordset(null::graphile_worker.job_spec, $1::json)))`,
      [JSON.stringify(specs)],
    );
  },

  async start({ databaseUrl, isOrdered, keys }, publish) {
    const runner = await run({
      preset: {
        worker: {
          connectionString: databaseUrl,
          concurrentJobs: 100,
          maxPoolSize: 25,
          // A fetch keeps one job of each named queue, and reads the others for nothing.
          localQueue: { size: isOrdered ? Math.min(mostFetched, keys) : mostFetched },
          // It pauses after each fetch that brought less than the size, as those of named queues do.
          pollInterval: isOrdered ? 1 : 2_000,
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
          logger: silent,
        },
      },
      noHandleSignals: true,
      taskList: { publish: (payload) => publish(payload as Event) },
    });
    return () => runner.stop();
  },
};
