// deno task recover: for an entitlement database that was restored from a backup. Changes and
// transactions of points that were made after the backup and published are still in the stream. This
// command stores them again, exactly as they were. The service must be stopped meanwhile. The command may be repeated: it
// skips changes that are stored already.
//
// It is part of the entitlement service because it writes the tables of that service, with its
// settings and its audit hashes. It connects as the owner of the database, because only the owner
// may write audit rows with times of the past.
//
// By default it recovers only events that the service sealed and whose versions follow the versions
// in the database. It lists the others; --accept EVENT_ID… or --accept all recovers them as well.
import type { JetStreamClient } from "nats";
import { z } from "zod";
import { type Database, openDatabase, transaction } from "@kenri/shared/postgres/postgres.ts";
import { runCommand, withJetStream } from "@kenri/shared/process/command.ts";
import { databaseUrl } from "@kenri/shared/process/server_urls.ts";
import { environment, parseSettings } from "@kenri/shared/process/settings.ts";
import { print } from "@kenri/shared/process/terminal.ts";
import { readConfig } from "../config.ts";
import { type Candidate, describe, examine, isOfPoints, type Payload } from "./examine.ts";
import { findLastChange, findNewer, refuseWhileServing, storeChange } from "./store_recovered.ts";
import { storePoints } from "./store_recovered_points.ts";

const perBatch = 500;
const answerWithinMs = 5_000;
const shownAtMost = 20;

interface Recovery {
  database: Database;
  jetStream: JetStreamClient;
  stream: string;
  since: Date;
  keys: string[];
  isAccepted: (event: Payload) => boolean;
}

interface Pass {
  read: number;
  recovered: number;
  left: number; // newer than what the database has, and not recovered
  shown: string[];
}

await runCommand(async () => {
  const config = readConfig();
  const isAccepted = acceptedBy(Deno.args);
  const database = openDatabase(
    readOwnerUrl() ?? config.databaseUrl,
    "recover",
    config.databaseTls,
  );
  try {
    await refuseWhileServing(database, new URL(config.databaseUrl).username);
    const since = await findLastChange(database);
    await withJetStream(config.nats, async (jetStream) => {
      const { sealKeys: keys, stream: { name: stream } } = config;
      const { read, recovered, left, shown } = await recoverAll(
        { database, jetStream, stream, since, keys, isAccepted },
      );
      print(`${read} events were read, ${recovered} changes were recovered`);
      if (left === 0) return;
      for (const line of shown) print(line);
      if (left > shown.length) print(`and ${left - shown.length} more`);
      throw new Error(
        `${left} changes can't be proven and were not recovered: ` +
          "docs/runbook.md describes how to inspect and accept them",
      );
    });
  } finally {
    await database.end();
  }
});

function acceptedBy(args: string[]): (event: Payload) => boolean {
  const [flag, ...ids] = args;
  if (flag !== undefined && (flag !== "--accept" || ids.length === 0)) {
    throw new Error("Usage: deno task recover [--accept all | --accept EVENT_ID…]");
  }
  return ({ event_id }) => ids.includes("all") || ids.includes(`${event_id}`);
}

// Repeats the pass until it recovers nothing more. An event that failed and was republished is in
// the stream after later versions of its entitlement, so the first pass can't recover those
// versions.
async function recoverAll(recovery: Recovery): Promise<Pass> {
  let recovered = 0;
  for (;;) {
    const pass = await recoverOnce(recovery);
    recovered += pass.recovered;
    if (pass.recovered === 0 || pass.left === 0) return { ...pass, recovered };
  }
}

async function recoverOnce(recovery: Recovery): Promise<Pass> {
  const pass: Pass = { read: 0, recovered: 0, left: 0, shown: [] };
  for await (const { read, events } of readEvents(recovery)) {
    const stored = await recoverChanges(recovery, events);
    const left = await findNewer(recovery.database, events.filter((_, at) => !stored[at]));
    pass.read += read;
    pass.recovered += stored.filter((isNew) => isNew).length;
    pass.left += left.length;
    pass.shown.push(...left.map(describe).slice(0, shownAtMost - pass.shown.length));
  }
  return pass;
}

function readOwnerUrl(): string | undefined {
  const name = "entitlement.migration.database.url";
  const schema = z.object({ [name]: databaseUrl().optional() });
  return parseSettings(schema, environment)[name];
}

async function* readEvents(
  { jetStream, stream, since, keys }: Recovery,
): AsyncGenerator<{ read: number; events: Candidate[] }> {
  const consumer = await jetStream.consumers.get(stream, { opt_start_time: since.toISOString() });
  for (let pending = (await consumer.info()).num_pending; pending > 0;) {
    // The last pull is never full, so it lasts until it expires. A second is enough for a stream
    // that answers.
    const expires = pending < perBatch ? 1_000 : answerWithinMs;
    const pulled = await consumer.fetch({ max_messages: perBatch, expires });
    const messages = await Array.fromAsync(pulled);
    if (messages.length === 0) throw new Error(`No answer from the stream within ${expires} ms`);
    pending = messages.at(-1)?.info.pending ?? 0;
    const events = messages.map((message) => examine(message, keys))
      .filter((event) => event !== undefined);
    yield { read: messages.length, events };
  }
}

async function recoverChanges(
  { database, isAccepted }: Recovery,
  events: Candidate[],
): Promise<boolean[]> {
  return await transaction(database, (tx) =>
    Promise.all(events.map(({ payload, doubt }) => {
      const accepted = isAccepted(payload);
      if (doubt !== undefined && !accepted) return false;
      return isOfPoints(payload)
        ? storePoints(tx, payload, accepted)
        : storeChange(tx, payload, accepted);
    })));
}
