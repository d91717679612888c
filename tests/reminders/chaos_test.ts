// The small service under load and faults: two replicas are killed, frozen and cut off, and their servers
// are killed and wiped. It uses the stack, the faults and the clients of `deno task chaos`.
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { untilHealed } from "../../tools/chaos/heal.ts";
import { endAllFaults, injectFaults } from "../../tools/chaos/inject.ts";
import { planOf, targetsOf, textOf } from "../../tools/chaos/plan.ts";
import { databaseUrl, leaseMs, serviceUser } from "../../tools/chaos/replica_settings.ts";
import { startStack } from "../../tools/chaos/stack.ts";
import type { ChaosService } from "../../tools/chaos/system.ts";
import { Wipes } from "../../tools/chaos/wipes.ts";
import { RepeatingClient } from "../../tools/load/repeating_client.ts";
import { withPlanted } from "../../tools/planted.ts";
import { ask } from "../../tools/servers/asking.ts";
import { program } from "./program.ts";
import {
  countsIn,
  migrations,
  type Reminder,
  runArguments,
  settingsOf,
  toHttp,
} from "./started.ts";

const reminders: ChaosService = {
  name: program.name,
  hasClients: true,
  servers: ["database", "nats"],
  migrations,
  arguments: runArguments,
  settings: ({ http, to }) => ({
    ...settingsOf({
      serviceUrl: databaseUrl(to("database"), program.name, serviceUser(program.name)),
      natsUrl: withPlanted(`nats://127.0.0.1:${to("nats")}`, "kenri"),
      ...{ stream: "reminders", subject: "reminders.fired" },
    }),
    REMINDERS_HTTP_PORT: `${http}`,
    REMINDERS_FIRING_LEASE: `${leaseMs}ms`,
    REMINDERS_OUTBOX_LEASE: `${leaseMs}ms`,
    REMINDERS_NATS_ACK_WAIT: "2s",
    SHUTDOWN_GRACE: "5s",
  }),
};

const minutes = 0.2;
const users = 8;
const kinds = [
  "kill",
  "stop",
  "freeze",
  "postgres-kill",
  "nats-kill",
  "nats-wipe",
  "cut",
  "mute",
] as const;
const noMessages = { sendAgain: () => Promise.resolve(), sendPoison: () => Promise.resolve() };

Deno.test("every reminder is counted once, whatever is killed, frozen, cut off or wiped", async () => {
  const folder = await Deno.makeTempDir();
  await using _folder = { [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }) };
  await using stack = await startStack([reminders], `${folder}/services.log`);
  const plan = planOf({ seed: 3, minutes, kinds, targets: targetsOf([reminders]) });
  const stopping = new AbortController();
  const load = startLoad(stack.clientUrls(program.name), stopping.signal);
  const parts = { stack, messages: noMessages, wipes: new Wipes() };
  const { done } = injectFaults(plan, parts, stopping.signal, () => {});
  await Promise.all([done, pause(minutes * 60_000)]);
  await endAllFaults(stack);

  stopping.abort();
  let acknowledged: Reminder[] | undefined;
  void load.then((all) => acknowledged = all);
  const ownerUrl = stack.ownerUrl(program.name);
  const healing = await untilHealed(stack, [
    () => acknowledged ? undefined : "clients have requests without an answer",
    async () => {
      const counts = await countsIn(ownerUrl);
      return counts["counted"] === acknowledged?.length ? undefined : JSON.stringify(counts);
    },
  ]);
  assert.ok(plan.length > 4, plan.map(textOf).join("\n"));
  const count = acknowledged?.length;
  assert.ok(count && count > 50, `${count} reminders`);
  const { "reminder attempts": _attempts, ...counts } = await countsIn(ownerUrl);
  const each = ["reminders FIRED", "events PUBLISHED", "received", "counted"];
  assert.deepEqual(counts, Object.fromEntries(each.map((what) => [what, count])));
  const texts = await ask<{ text: string }>(ownerUrl, "select text from reminders");
  assert.deepEqual(
    texts.map(({ text }) => text).sort(),
    acknowledged?.map(({ text }) => text).sort(),
  );
  assert.ok(healing.ms < leaseMs + 5_000, `healed after ${healing.ms} ms, last: ${healing.last}`);
});

/** Each of the clients repeats a request until it is answered. Resolves when all are answered. */
async function startLoad(urls: string[], stop: AbortSignal): Promise<Reminder[]> {
  const client = new RepeatingClient(urls, { attemptTimeoutMs: 3_000, pauseMs: 100 });
  const acknowledged: Reminder[] = [];
  const work = async (user: string) => {
    for (let count = 1; !stop.aborted; count++) {
      const key = `${user}-${count}`;
      const reminder = { key, user, text: key, at: Date.now() + Math.random() * 1_000 };
      const answer = (await client.ask(toHttp(reminder))).at(-1)?.answer;
      assert.equal(answer?.status, 200, `${answer?.body}`);
      acknowledged.push(reminder);
      await pause(100);
    }
  };
  await Promise.all(Array.from({ length: users }, (_, i) => work(`user-${i}`)));
  return acknowledged;
}
