import assert from "node:assert/strict";
import type { JetStreamManager, NatsConnection, StreamInfo } from "nats";
import type { Log } from "../process/log.ts";
import { StartRefused } from "../process/start_refused.ts";
import { withoutPauses } from "../process/timers_testing.ts";
import { NatsLink } from "./link.ts";
import { eachSession } from "./sessions.ts";

const info = { config: { name: "events", num_replicas: 1 } } as StreamInfo;
const works = () => Promise.resolve();
const fails = (reason: string) => () => Promise.reject(new Error(reason));

Deno.test("a failure is logged once until the work has succeeded or fails for another reason", async () => {
  const { complaints } = await run([
    ...[fails("one"), fails("one"), fails("two"), fails("one"), fails("one")],
    (succeeds) => {
      succeeds();
      return fails("one")();
    },
  ]);
  assert.deepEqual(complaints, ["one", "two", "one", "one"]);
});

Deno.test("a failure because the connection was lost is not logged", async () => {
  const { complaints } = await run([
    (_, lose) => {
      lose();
      return fails("lost")();
    },
    fails("other"),
  ]);
  assert.deepEqual(complaints, ["other"]);
});

Deno.test("a stream that can lose events is reported once", async () => {
  const { warnings } = await run([works, fails("one"), works]);
  assert.equal(warnings.filter((message) => /has one replica/.test(message)).length, 1);
});

Deno.test("a stream that can't be used ends the loop only before it was ever used", async () => {
  const refused = () => Promise.reject(new StartRefused("missing"));
  const exists = () => Promise.resolve(info);
  await assert.rejects(run([works], [refused]), StartRefused);
  const { complaints, link } = await run([works, works], [exists, refused, refused]);
  assert.deepEqual(complaints, ["missing"]);
  assert.equal(link.unprovisioned.size, 0);
});

// Runs the loop until it has made all steps, without its pauses.
async function run(
  steps: ((succeeds: () => void, lose: () => void) => Promise<void>)[],
  answers: (() => Promise<StreamInfo>)[] = [],
): Promise<{ complaints: unknown[]; warnings: string[]; link: NatsLink }> {
  const [complaints, warnings]: [unknown[], string[]] = [[], []];
  const warn = (message: string, { reason }: { reason?: string }) =>
    message === "Failed: {reason}" ? complaints.push(reason) : warnings.push(message);
  const log = { warn } as unknown as Log;
  const stop = new AbortController();
  const jetstreamManager = () => Promise.resolve({} as JetStreamManager);
  const connection = { jetstreamManager } as unknown as NatsConnection;
  const link = new NatsLink({ urls: "" }, "test", log);
  let lost = new AbortController();
  link.session = () => {
    if (lost.signal.aborted) lost = new AbortController();
    return Promise.resolve({ connection, signal: lost.signal, refused: new Set() });
  };
  await withoutPauses(() =>
    eachSession(link, {
      name: "loop",
      complaint: "Failed: {reason}",
      log,
      ensure: () => (answers.shift() ?? (() => Promise.resolve(info)))(),
      work: async (_, succeeds) => {
        const step = steps.shift();
        if (steps.length === 0) stop.abort();
        await step?.(succeeds, () => lost.abort());
      },
    }, stop.signal)
  );
  return { complaints, warnings, link };
}
