// The transcripts of docs/operations.md are what the commands print in one story: a channel fails
// for some users, is repaired, and then the notification service loses an event.
//
// KENRI_WRITE_DOCS=true writes the output into the page.
import assert from "node:assert/strict";
import { type Account, resolve, startAccount } from "../support/account.ts";
import { grant } from "../support/api.ts";
import { ask } from "../support/entitlement.ts";
import { make } from "../support/endpoints.ts";
import { countsOf, startNotification, untilAllAcked, untilSent } from "../support/notification.ts";
import { give, orderSettings, senderSettings } from "../support/orders.ts";
import { inMs, reserve } from "../support/points.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { ops } from "./ops.ts";
import { failingSends, look, type Stack, startStack } from "../support/stack.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { root } from "../../tools/root.ts";

const page = `${root}docs/operations.md`;

Deno.test("each transcript in docs/operations.md is what the command prints", async () => {
  await using receiver = await startReceiver();
  await using sender = await startService("sender", senderSettings);
  const always = {
    ...orderSettings(sender),
    NOTIFICATION_ENDPOINTS_FAILURES_TO_PARK: "2",
    NOTIFICATION_ENDPOINTS_PROBE_MIN: "1h",
    NOTIFICATION_ENDPOINTS_PROBE_MAX: "1h",
    NOTIFICATION_ORDERS_MAX_ATTEMPTS: "2",
    NOTIFICATION_NATS_DUPLICATE_WINDOW: "100ms",
  };
  await using stack = await startStack({
    entitlement: { ENTITLEMENT_NATS_DUPLICATE_WINDOW: "100ms" },
    notification: { ...failingSends, ...always },
  });
  await using account = await startAccount({ ACCOUNT_DEBUG_ENABLED: "true" });
  await register(account);
  const { entitlement, notification, place } = stack;
  await grant(entitlement.url, { user_id: "ann" }, "purchase-1");
  await grant(entitlement.url, { user_id: "unlucky-bob" }, "purchase-2");
  const dead = (count: number) =>
    until(`${count} are dead`, async () => (await countsOf(place)).notification_dlq === count);
  await dead(1);
  await grant(entitlement.url, { user_id: "unlucky-eve" }, "purchase-3");
  await dead(2);
  await untilSent(place, 1);
  await untilAllAcked(place);

  const repair = async () => {
    await notification.stop();
    return await startNotification(place, {
      ...always,
      NOTIFICATION_HTTP_PORT: new URL(notification.url).port,
    });
  };
  const text = await Deno.readTextFile(page);
  const ids = new Map<string, string>(); // ids of this run by those of the page
  await using after = new AsyncDisposableStack();
  let written = text;
  for (const [block, command = "", expected = ""] of text.matchAll(transcript)) {
    if (/send-back .*--reason/.test(command)) after.use(await repair());
    if (command.includes("reconcile --since 1h --dry-run")) await lose(stack);
    if (command === "deno task ops points") await reservePoints(stack);
    if (command === "deno task ops orders") await failOrders(stack, receiver);
    const args = argumentsOf(command).map((word) => ids.get(word) ?? word);
    const { output } = await ops({ ...stack, account }, ...args);
    if (/send-back .*--reason/.test(command)) await untilSent(place, 3);
    const shown = output.trimEnd();
    expected.match(uuid)?.forEach((id, i) => ids.set(id, output.match(uuid)?.[i] ?? ""));
    if (Deno.env.get("KENRI_WRITE_DOCS") === "true") {
      written = written.replace(block, () => `\`\`\`console\n$ ${command}\n${shown}\n\`\`\``);
    } else assert.equal(normal(shown), normal(expected), command);
  }
  await Deno.writeTextFile(page, written);
});

const transcript = /^```console\n\$ (deno task ops .*)\n([^]*?)\n?```$/gm;
const uuid = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** Splits a command like a shell. */
function argumentsOf(command: string): string[] {
  return [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? "")
    .slice(3);
}

/** Removes what differs from run to run. */
function normal(output: string): string {
  return output.replaceAll(uuid, "ID")
    .replaceAll(/[0-9a-f]{32}/g, "TRACE")
    .replaceAll(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?/g, "TIME")
    .replaceAll(/\b\d+ (ms|s|min|h|d)\b/g, "AGE")
    .replaceAll(/\(worker \S+,/g, "(worker W,")
    .replaceAll(/127\.0\.0\.1:\d{2,5}/g, "HOST")
    .replaceAll(/ +/g, " ");
}

/** Somebody has an account. */
async function register(account: Account): Promise<void> {
  const identity = { provider: "https://issuer.example", subject: "248289761001" };
  const person = { name: "Ann Archer", email: "ann@example.com", email_verified: true };
  await resolve(account, { ...identity, ...person });
  await until("it is published", async () => {
    const { waiting } = await look(account.url, "/debug/account/status");
    return waiting === 0;
  });
}

/** An order is given up, and an endpoint can't be reached. */
async function failOrders({ notification: stage }: Stack, receiver: Receiver): Promise<void> {
  receiver.behave({ status: 503, body: "no room" });
  await give(stage, { url: `${receiver.url}/payouts`, payload: { amount: 100 } }, "payout-1");
  const { endpoint_id } = await make(
    { ...stage, receiver },
    { url: "http://127.0.0.1:1/hooks", description: "the shop" },
  );
  await give(stage, { endpoint_id, payload: {} });
  const seen = async () => {
    const { orders, errors } = await look(stage.url, "/debug/notification/status");
    return orders.parked === 1 && errors.length === 1;
  };
  await until("one is given up and one is parked", seen);
}

/** One reservation is done, and one is to come. */
async function reservePoints({ entitlement, place }: Stack): Promise<void> {
  const zoe = { user_id: "zoe", reason: "campaign" };
  await reserve(entitlement.url, { ...zoe, source_id: "summer" }, "summer-zoe");
  await reserve(entitlement.url, { ...zoe, source_id: "autumn", execute_at: inMs(3_600_000) });
  await untilSent(place, 3); // zoe's notification is in the place of the one that was lost
}

/** Makes it look as if Ann's event had never been received. */
async function lose({ place }: Stack): Promise<void> {
  const [lost] = await ask<{ event_id: string }>(
    place.ownerUrl,
    "delete from notifications where user_id = 'ann' returning event_id",
  );
  await ask(place.ownerUrl, "delete from processed_events where event_id = $1", [lost?.event_id]);
}
